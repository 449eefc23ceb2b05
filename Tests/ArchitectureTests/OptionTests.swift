import Foundation
import Testing

/// The names and keys of options, and the options that are made with them, by the text of the sources.
@Suite("Options") struct OptionTests {
    /// An extension, without what stands around it.
    private struct Extension {
        let module: String
        let type: String
        let lines: [String]

        /// The code without comments.
        var code: String {
            lines.filter { !$0.isComment }.joined(separator: "\n") + "\n"
        }
    }

    /// A declaration of a name, or of the key that is one.
    private struct Declaration {
        let module: String
        /// The name in Swift.
        let identifier: String
        /// The name in errors.
        let text: String
        let isPublic: Bool
        let isKey: Bool
    }

    private static let optionTypes: Set<String> = [
        "SendOption", "SubscribeOption", "UnsubscribeOption", "ConnectOption", "AckOption",
        "DisconnectOption",
    ]

    private let extensions: [Extension]
    private let declarations: [Declaration]
    /// Further names of keys, which another module declares.
    private let aliases: [Declaration]

    init() throws {
        extensions = try Self.sources().flatMap { Self.extensions(of: $0.module, in: $0.text) }
        let ofNames = extensions.filter { $0.type == "OptionName" }
        let found = ofNames.flatMap { Self.declarations(in: $0) }
        declarations = found
        aliases = ofNames.flatMap { Self.aliases(of: found, in: $0) }
    }

    private static func sources() throws -> [(module: String, text: String)] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources")
        let names = try #require(FileManager.default.enumerator(atPath: root.path))
        return try names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.map {
            name in
            let url = root.appendingPathComponent(name)
            return (
                module: name.split(separator: "/").first.map(String.init) ?? "",
                text: try String(contentsOf: url, encoding: .utf8)
            )
        }
    }

    private static func extensions(of module: String, in source: String) -> [Extension] {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var found: [Extension] = []
        for first in lines.indices {
            guard let start = lines[first].prefixMatch(of: #/extension ([\w.]+) \{/#) else {
                continue
            }
            var last = first
            if !lines[first].hasSuffix("}") {
                last = lines[first...].firstIndex(of: "}") ?? first
            }
            found.append(
                Extension(
                    module: module,
                    type: String(start.1),
                    lines: Array(lines[first...last])
                )
            )
        }
        return found
    }

    private static func declarations(in found: Extension) -> [Declaration] {
        let pattern =
            #/
            (public\s)?(?:package\s)?static\slet\s(\w+)\s=\s+
            (OptionKey<[^(]+>|OptionName)\(\s*(?:stored:\s)?"(\w+)"
            /#
        return found.code.matches(of: pattern).map { match in
            Declaration(
                module: found.module,
                identifier: String(match.2),
                text: String(match.4),
                isPublic: match.1 != nil,
                isKey: match.3 != "OptionName"
            )
        }
    }

    private static func aliases(of known: [Declaration], in found: Extension) -> [Declaration] {
        let pattern =
            #/
            (public\s)?(?:package\s)?static\s(?:let|var)\s(\w+)(?::\sOptionKey<[^={]+>)?
            (?:\s=|\s\{)\s+(?:OptionName\.|Self\.|\.)?(\w+)\s
            /#
        return found.code.matches(of: pattern).compactMap { match -> Declaration? in
            guard let key = known.first(where: { $0.identifier == match.3 }) else { return nil }
            return Declaration(
                module: found.module,
                identifier: String(match.2),
                text: key.text,
                isPublic: match.1 != nil,
                isKey: key.isKey
            )
        }
    }

    @Test("No two modules declare an option of one name, and no module declares it twice")
    func unique() throws {
        for (text, found) in Dictionary(grouping: declarations, by: \.text) {
            #expect(found.count == 1, "\(text): \(found.map(\.module))")
        }
        // What a file sees that imports both modules: a second name for a key of another module is as ambiguous.
        let visible = (declarations + aliases).filter(\.isPublic)
        for (name, found) in Dictionary(grouping: visible, by: \.identifier) {
            #expect(Set(found.map(\.module)).count == 1, "\(name): \(found.map(\.module))")
        }
        var modules: [String: Set<String>] = [:]
        let shared = Self.optionTypes.union(["EntryCommand", "EntryCommand.Kind"])
        for found in extensions where shared.contains(found.type) {
            for match in found.code.matches(of: #/public\sstatic\s(?:let|var|func)\s(\w+)/#) {
                modules["\(found.type).\(match.1)", default: []].insert(found.module)
            }
        }
        #expect(modules.count > 40)
        for (name, found) in modules { #expect(found.count == 1, "\(name): \(found)") }
        // All of them were found, wherever they are declared.
        var count = 0
        for source in try Self.sources() {
            count += source.text.split(separator: "\n").map(String.init).count { line in
                !line.isComment && line.contains(#/OptionKey<[\w.\[\]<>:, ]+>\(/#)
            }
        }
        #expect(declarations.count(where: \.isKey) == count)
    }

    /// The keys of what a transport has received; an app reads them.
    private static let ofMessages: Set = ["eventType", "serial", "subscriptionIdentifiers"]
    /// Those that are read as properties.
    private static let properties: Set = ["isSessionPresent"]

    @Test("A name is spelled in errors as it is in Swift")
    func spelling() {
        for name in declarations + aliases where name.isPublic {
            #expect(name.identifier == name.text, "\(name.module)")
        }
        // A key that is not public may have its name from the module that has the option.
        // One that a transport sets, and that apps read as a property, is in no error.
        for key in declarations where !key.isPublic && key.identifier != key.text {
            guard !Self.properties.contains(key.text) else { continue }
            #expect(
                aliases.contains { $0.isPublic && $0.text == key.text },
                "\(key.module): \(key.identifier)"
            )
        }
    }

    @Test("Each key has an option, each option has a key, and each says what it is")
    func complete() {
        let keys = Set((declarations + aliases).filter { $0.isPublic && $0.isKey }.map(\.text))
        #expect(keys.isSuperset(of: ["timeout", "password", "receipt", "lastEventID"]))
        var used: Set<String> = []
        for found in extensions where Self.optionTypes.contains(found.type) {
            for match in found.code.matches(of: #/\bSelf\(\s*\.(\w+),/#) {
                let key = String(match.1)
                #expect(keys.contains(key), "\(found.module): \(found.type) \(key)")
                used.insert(key)
            }
            for (index, line) in found.lines.enumerated() where line.contains("public static ") {
                guard !line.isComment else { continue }
                let above = found.lines[..<index].last { !$0.contains(#/^ *@/#) }
                #expect(above?.contains("///") == true, "\(found.module): \(line)")
            }
        }
        #expect(keys.subtracting(used) == Self.ofMessages, "keys that no entry can set")
    }
}

extension String {
    fileprivate var isComment: Bool { contains(#/^ *\/\//#) }
}
