import Foundation
import Testing
import Waybill
import WaybillTesting

/// The table of options and protocols in `Documentation/Mapping.md`, made from a sample of each option.
@Suite("Table of options") struct OptionTableTests {
    private typealias WireProtocol = MockTransport.WireProtocol

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    // MARK: What the protocols do with the samples

    /// The error of a command over a protocol before any input or output; nil for a command that is sent.
    private static func error(
        _ command: EntryCommand,
        over wireProtocol: WireProtocol
    ) -> WaybillError? {
        let needsTopic = [.send, .subscribe, .unsubscribe].contains(command.kind)
        let request = Request(topic: needsTopic ? "a" : nil, command: command)
        do throws(WaybillError) {
            try MockTransport(like: wireProtocol).check(request)
            return nil
        } catch {
            return error
        }
    }

    /// Whether a protocol does not have the command of a sample, whatever its options.
    private static func lacksCommand(
        of sample: OptionSample,
        _ wireProtocol: WireProtocol
    ) -> Bool {
        error(OptionSample.plain(sample.command.kind), over: wireProtocol)?.code == .unsupported
    }

    @Test(
        "An option that a protocol does not support is refused by its key, and no other is refused"
    )
    func refusals() {
        for sample in OptionSample.all {
            var isTaken = false
            for wireProtocol in WireProtocol.allCases {
                guard let error = Self.error(sample.command, over: wireProtocol) else {
                    isTaken = true
                    continue
                }
                let option = Self.lacksCommand(of: sample, wireProtocol) ? nil : sample.option
                #expect(error.code == .unsupported, "\(wireProtocol) \(sample.label): \(error)")
                #expect(error.option == option, "\(wireProtocol) \(sample.label): \(error)")
                #expect(error.command == sample.command.name, "\(wireProtocol) \(sample.label)")
            }
            #expect(isTaken, "no protocol takes \(sample.label) of \(sample.command.name)")
        }
    }

    // MARK: The table

    private static func name(of wireProtocol: WireProtocol) -> String {
        switch wireProtocol {
        case .mqtt5: "MQTT 5"
        case .mqtt3_1_1: "MQTT 3.1.1"
        case .stomp: "STOMP"
        case .events: "event streams"
        }
    }

    private static func commands(of samples: [OptionSample]) -> String {
        samples.map { "`\($0.command.name)`" }.joined(separator: ", ")
    }

    /// What a protocol does with one option in several commands.
    private static func cell(
        _ samples: [OptionSample],
        _ wireProtocol: WireProtocol
    ) -> String {
        let taken = samples.filter { error($0.command, over: wireProtocol) == nil }
        if taken.count == samples.count { return "yes" }
        if !taken.isEmpty { return "only " + commands(of: taken) }
        return samples.allSatisfy { lacksCommand(of: $0, wireProtocol) } ? "–" : "`unsupported`"
    }

    private static func row(_ cells: [String]) -> String {
        "| " + cells.joined(separator: " | ") + " |"
    }

    private static func table() -> String {
        var labels: [String] = []
        var samplesByLabel: [String: [OptionSample]] = [:]
        for sample in OptionSample.all {
            if samplesByLabel[sample.label] == nil { labels.append(sample.label) }
            samplesByLabel[sample.label, default: []].append(sample)
        }
        let head = ["option", "of"] + WireProtocol.allCases.map { name(of: $0) }
        var lines = [row(head), "|" + String(repeating: "---|", count: head.count)]
        for label in labels {
            let samples = samplesByLabel[label] ?? []
            let cells = WireProtocol.allCases.map { cell(samples, $0) }
            lines.append(row([label, commands(of: samples)] + cells))
        }
        return lines.joined(separator: "\n")
    }

    @Test("The table is what the protocols do")
    func documented() throws {
        let page = try String(
            contentsOf: Self.root.appendingPathComponent("Documentation/Mapping.md"),
            encoding: .utf8
        )
        let parts = page.components(separatedBy: "<!-- options: made by OptionTableTests -->")
        try #require(parts.count == 2, "the comment before the table is missing")
        let found = parts[1].components(separatedBy: "<!-- end -->")[0]
        let table = Self.table()
        let isSame = found.split(separator: "\n") == table.split(separator: "\n")
        #expect(isSame, "Documentation/Mapping.md needs this table:\n\n\(table)\n")
    }

    // MARK: The samples

    /// The code of each file of the sources, without comments.
    private static func sources() throws -> [[String]] {
        let sources = root.appendingPathComponent("Sources")
        let names = try #require(FileManager.default.enumerator(atPath: sources.path))
        return try names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.map {
            name in
            let text = try String(
                contentsOf: sources.appendingPathComponent(name),
                encoding: .utf8
            )
            return text.split(separator: "\n").map(String.init).filter { line in
                !line.contains(#/^ *\/\//#)
            }
        }
    }

    private static let optionTypes: [EntryCommand.Kind: String] = [
        .send: "SendOption", .subscribe: "SubscribeOption", .unsubscribe: "UnsubscribeOption",
        .connect: "ConnectOption", .ack: "AckOption", .nack: "AckOption",
        .disconnect: "DisconnectOption",
    ]

    /// The options that a file makes, as `SendOption.timeout`.
    private static func options(in lines: [String]) -> Set<String> {
        var found: Set<String> = []
        var type = ""
        var code = ""
        for line in lines {
            if let start = line.prefixMatch(of: #/(?:public |package )?extension (\w+)/#) {
                type = String(start.1)
                code = ""
            }
            code += line + "\n"
            guard line.hasSuffix("}"), line.first == "}" || line.contains("extension ") else {
                continue
            }
            if optionTypes.values.contains(type) {
                for match in code.matches(of: #/\bSelf\(\s*\.(\w+),/#) {
                    found.insert("\(type).\(match.1)")
                }
            }
            type = ""
        }
        return found
    }

    @Test("Each key has a sample, and so has each option of each command")
    func complete() throws {
        let sources = try Self.sources()
        let keyPattern = #/OptionKey<[\w.\[\]<>:, ]+>\(\s*(?:stored: )?"(\w+)"/#
        var keys: Set<String> = []
        for lines in sources {
            let code = lines.joined(separator: "\n")
            for match in code.matches(of: keyPattern) {
                keys.insert(String(match.1))
            }
        }
        // The message of an acknowledgement and the kind of a command count as no options.
        keys.subtract(["messageID", "kind"])
        // Nor do the keys that only messages and receipts have.
        keys.subtract([
            "eventType", "serial", "subscriptionIdentifiers", "isSessionPresent", "connack",
        ])
        let sampled = Set(OptionSample.all.map { "\($0.option)" })
        #expect(keys.subtracting(sampled) == [], "without a sample")
        #expect(sampled.subtracting(keys) == [], "without a key")

        let options = sources.reduce(into: Set<String>()) { $0.formUnion(Self.options(in: $1)) }
        let sampledOptions = Set(
            OptionSample.all.map { sample in
                "\(Self.optionTypes[sample.command.kind] ?? "").\(sample.option)"
            }
        )
        #expect(options.subtracting(sampledOptions) == [], "without a sample")
        #expect(sampledOptions.subtracting(options) == [], "without an option")
    }
}
