import Foundation
import Testing

/// The migration page for Stomper shows code that is compiled and run.
@Suite("The page for Stomper users") struct PageTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("Each Swift block of the page is source text of the example, and all of it is shown")
    func blocks() throws {
        let page = try text("Documentation/ComingFromStomper.md")
        let blocks = page.components(separatedBy: "```swift\n").dropFirst().map { rest in
            rest.components(separatedBy: "```").first ?? ""
        }
        let names = ["ChatEntry", "ChatTokens", "ChatClient"]
        let sources = try names.map { try text("Examples/StomperPort/\($0).swift") }
        for block in blocks {
            #expect(sources.contains { $0.contains(block) }, "\(block)")
        }
        for (name, source) in zip(names, sources) {
            let declarations = source.components(separatedBy: "\n").filter {
                $0.hasPrefix("public ") && !$0.hasPrefix("public import")
            }
            for declaration in declarations {
                #expect(page.contains(declaration), "\(name): \(declaration)")
            }
        }
    }
}
