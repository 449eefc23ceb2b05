import Foundation
import Testing

/// Each documented table of states has a row for each case of its enum, and no other.
///
/// A table of states is a table of a documentation comment whose first heading is `state`, `progress` or `place`, alone
/// or with `of` and more words. A first cell is the case's name in words. What follows it in parentheses tells two rows
/// of one case apart. `none` stands for the absence of a state. After each `→` stands the name of a case.
@Suite("Tables of states") struct StateTableTests {
    struct Table: Sendable, CustomTestStringConvertible {
        let type: String
        /// The text of the file after the table.
        let source: String
        /// The texts of all files of the target.
        let target: [String]
        let rows: [[String]]

        var testDescription: String { type }
    }

    /// The types whose tables must be found: a table that loses its form would not be compared.
    private static let types: Set = [
        "ConnectionMachine", "CredentialTrial", "EventStreamConnection", "HTTPClientConnection",
        "HTTPServerConnection", "HTTPTunnelHandshake", "MQTTClientAuthentication",
        "MQTTClientChannel", "MQTTClientConnection", "MQTTClientExchanges",
        "MQTTClientHandshake", "MQTTReceiver", "MQTTServerAuthentication",
        "MQTTServerConnection", "MQTTSession", "MQTTStoreQueue", "MockConnection",
        "NetworkAttemptState", "NetworkListenerState", "NetworkStreamState", "NetworkViability",
        "Opening", "PendingReplies", "ReplaySuspicion", "SCRAMClient",
        "SCRAMServer",
        "SSEMachine", "STOMPClientConnection", "STOMPReceiptHabit", "STOMPServerConnection",
        "SubscriptionSuspicion",
        "WebSocketConnection",
        "WebSocketOpeningHandshake", "WriteTurn",
    ]

    /// The types whose states are no enum, but optional values or a Boolean.
    private static let withoutEnum: Set = [
        "HTTPTunnelHandshake", "MQTTStoreQueue", "PendingReplies",
    ]

    /// The types whose states are the enum of another type.
    private static let owners = ["MQTTClientConnection": "MQTTClientChannel"]

    // MARK: Reading the sources

    private static let tables: [Table] = {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources")
        let names = FileManager.default.enumerator(atPath: sources.path)?
            .compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted()
        var targets: [String: [String]] = [:]
        for name in names ?? [] {
            let file = sources.appendingPathComponent(name)
            guard let text = try? String(contentsOf: file, encoding: .utf8) else { continue }
            targets[String(name.prefix { $0 != "/" }), default: []].append(text)
        }
        return targets.values.flatMap { texts in texts.flatMap { tables(in: $0, of: texts) } }
            .sorted { $0.type < $1.type }
    }()

    private static func tables(in text: String, of target: [String]) -> [Table] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.filter { lines[$0].hasSuffix("|") }.compactMap { start in
            guard
                lines[start].contains(#/^ *\/\/\/ \| (?:state|progress|place)(?: of [^|]*)? \|/#)
            else { return nil }
            let rest = lines[start...]
            let end = rest.firstIndex { !$0.contains(#/^ *\/\/\/ \|/#) } ?? rest.endIndex
            let declaration = lines[end...].first { !$0.contains(#/^ *(?:\/\/|@)/#) } ?? ""
            let name = declaration.firstMatch(of: #/(?:struct|enum|class|actor) (\w+)/#)
            let rows = lines[start..<end].dropFirst(2).map { line in
                line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                    .map { $0.trimmingCharacters(in: .whitespaces) }
            }
            return Table(
                type: name.map { String($0.1) } ?? "line \(start + 1)",
                source: lines[end...].joined(separator: "\n"),
                target: target,
                rows: rows
            )
        }
    }

    /// The cases of an enum in words, or nil if the text does not declare it.
    private static func cases(of name: String, in text: String) -> [String]? {
        guard text.contains("enum \(name)") else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = lines.firstIndex { $0.contains(try! Regex(#"^ *(?:\w+ )*enum \#(name)\b"#)) }
        guard let start else { return nil }
        let indentation = String(lines[start].prefix { $0 == " " })
        let body = lines[start...].dropFirst().prefix { !$0.hasPrefix(indentation + "}") }
        return body.compactMap { line in
            line.wholeMatch(of: #/( *)(?:indirect )?case (.*)/#)
        }.filter { $0.1 == indentation + "    " }.flatMap { match in
            match.2.replacing(#/\([^()]*(?:\([^()]*\)[^()]*)*\)|\(.*/#, with: "")
                .split(separator: ",")
        }.map { words($0.trimmingCharacters(in: .whitespaces)) }
    }

    /// `shutDown` as `shut down`.
    private static func words(_ name: String) -> String {
        name.replacing(#/[A-Z]/#) { " " + $0.output.lowercased() }
    }

    private static func cases(of table: Table) -> [String]? {
        if let own = cases(of: table.type, in: table.source) { return own }
        let inFile = ["State", "Progress", "Place"].lazy
            .compactMap { cases(of: $0, in: table.source) }.first
        if let inFile { return inFile }
        return table.target.lazy.compactMap { text in
            if let owner = owners[table.type] {
                guard text.contains("struct \(owner): ") else { return nil }
                return cases(of: "State", in: text)
            }
            return cases(of: table.type + "State", in: text)
        }.first
    }

    // MARK: Comparing

    @Test("Every table is found")
    func found() {
        #expect(Self.types.subtracting(Self.tables.map(\.type)) == [])
    }

    @Test("A row for each case, and each once", arguments: tables)
    func rows(_ table: Table) throws {
        let cases = Self.cases(of: table)
        guard !Self.withoutEnum.contains(table.type) else {
            #expect(cases == nil, "\(table.type) has an enum now")
            return
        }
        let known = try #require(cases, "\(table.type) has a table and no enum")
        #expect(!known.isEmpty && !table.rows.isEmpty)
        let rows = table.rows.compactMap(\.first)
        let states = rows.map { row in
            row.prefix { $0 != "(" }.trimmingCharacters(in: .whitespaces)
        }
        for (row, state) in zip(rows, states) {
            #expect(known.contains(state) || state == "none", "\(table.type): unknown: \(row)")
            #expect(rows.count { $0 == row } == 1, "\(table.type): more than once: \(row)")
            let isAlone = states.count { $0 == state } == 1
            #expect(isAlone || row != state, "\(table.type): more than once: \(row)")
        }
        for state in known where !states.contains(state) {
            Issue.record("\(table.type): missing: \(state)")
        }
    }

    @Test("Each arrow leads to a case", arguments: tables)
    func arrows(_ table: Table) {
        guard let known = Self.cases(of: table) else { return }
        for cell in table.rows.flatMap({ $0 }) {
            for target in cell.components(separatedBy: "→ ").dropFirst() {
                let isKnown = known.contains { target == $0 || target.hasPrefix($0 + " ") }
                let beforeMark = target.prefix { !",;:".contains($0) }
                #expect(
                    isKnown || known.contains(String(beforeMark)),
                    "\(table.type): leads to no state: → \(target)"
                )
            }
        }
    }
}
