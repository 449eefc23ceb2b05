import Foundation
import Testing

/// The migration page for EventSource shows code that is compiled and run.
@Suite("The page for EventSource users") struct PageTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("Each Swift block of the page is source text of the example or its tests")
    func blocks() throws {
        let page = try text("Documentation/ComingFromEventSource.md")
        let blocks = page.components(separatedBy: "```swift\n").dropFirst().map { rest in
            rest.components(separatedBy: "```").first ?? ""
        }
        #expect(blocks.count == 2)
        let sources = try [
            "Examples/EventSourcePort/NewsFeed.swift",
            "Examples/EventSourcePortTests/EventSourcePortTests.swift",
        ].map(text)
        for block in blocks {
            #expect(sources.contains { $0.contains(block) }, "\(block)")
        }
    }
}
