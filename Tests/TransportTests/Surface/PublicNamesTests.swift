import Foundation
import Testing

@Suite("Public names", .timeLimit(.minutes(30)))
struct PublicNamesTests {
    @Test("Each public name is in the list that is compiled beside Apple's modules")
    func complete() throws {
        var known = Set(
            PublicNames.all.map { type in
                String("\(type)".prefix { $0 != "<" }).replacingOccurrences(of: "any ", with: "")
            }
        )
        // It is in the file, and cannot be in the list.
        known.insert("OptionReader")
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources")
        let modules = [
            "Waybill", "WaybillMQTT", "WaybillMock", "WaybillSSE", "WaybillSTOMP",
            "WaybillTesting", "WaybillWebSocket",
        ]
        let kinds: Set<Substring> = ["struct", "class", "enum", "actor", "protocol", "typealias"]
        for module in modules {
            let folder = sources.appendingPathComponent(module)
            let files = try #require(FileManager.default.enumerator(atPath: folder.path))
            for case let name as String in files
            where name.hasSuffix(".swift") && !name.hasSuffix("+Apple.swift") {
                let text = try String(
                    contentsOf: folder.appendingPathComponent(name),
                    encoding: .utf8
                )
                for line in text.split(separator: "\n") where line.hasPrefix("public ") {
                    let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                    guard let kind = words.prefix(4).firstIndex(where: kinds.contains),
                        kind + 1 < words.count
                    else { continue }
                    #expect(known.contains(String(words[kind + 1])), "\(module)/\(name): \(line)")
                }
            }
        }
    }
}
