import Foundation
import Testing

/// Each option is a parameter both of its type's initialiser and of its command's factory.
@Suite("Options") struct OptionTests {
    private static func source(_ name: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let folder = root.appendingPathComponent("Sources/Waybill/Entries")
        return try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    /// The text of a declaration, from its first line to the line that closes it at the same indentation.
    private static func block(_ start: String, in source: String) throws -> [String] {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let first = try #require(lines.firstIndex { $0.hasPrefix(start) }, "\(start)")
        let indentation = lines[first].prefix { $0 == " " }
        let last = try #require(lines[first...].firstIndex { $0.hasPrefix(indentation + "}") })
        return Array(lines[first...last])
    }

    private static func properties(_ type: String, in file: String) throws -> [String] {
        try block("public struct \(type):", in: source(file)).compactMap { line in
            line.firstMatch(of: #/^    public var (\w+): /#).map { String($0.1) }
        }
    }

    private static func parameters(_ start: String, _ lines: [String]) throws -> [String] {
        let first = try #require(lines.firstIndex { $0.hasPrefix(start) }, "\(start)")
        if let only = lines[first].firstMatch(of: #/\((\w+): .*\)/#) { return [String(only.1)] }
        let last = try #require(lines[first...].firstIndex { $0.hasPrefix("    )") })
        return lines[first...last].compactMap { line in
            line.firstMatch(of: #/^        (?:_ )?(\w+): /#).map { String($0.1) }
        }
    }

    @Test(
        "Every property is a parameter of the initialiser and of the factory",
        arguments: [
            ("ConnectOptions", "CommandOptions.swift", "connect"),
            ("SendOptions", "CommandOptions.swift", "send"),
            ("SubscribeOptions", "SubscribeOptions.swift", "subscribe"),
            ("UnsubscribeOptions", "UnsubscribeOptions.swift", "unsubscribe"),
            ("AcknowledgementOptions", "AcknowledgementOptions.swift", "nack"),
            ("DisconnectOptions", "DisconnectOptions.swift", "disconnect"),
            ("Will", "Will.swift", nil),
        ]
    )
    func complete(_ type: String, _ file: String, _ factory: String?) throws {
        let properties = try Set(Self.properties(type, in: file))
        #expect(!properties.isEmpty)
        let lines = try Self.block("public struct \(type):", in: Self.source(file))
        #expect(try Set(Self.parameters("    public init(", lines)) == properties)
        guard let factory else { return }
        let commands = try Self.source("EntryCommand.swift").split(separator: "\n").map(String.init)
        let start = "    public static func \(factory)("
        // The message that an acknowledgement names is no option.
        #expect(try Set(Self.parameters(start, commands)).subtracting(["id"]) == properties)
    }
}
