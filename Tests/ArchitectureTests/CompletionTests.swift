import Foundation
import Testing

/// What completes in a command where an app imports the module of one transport, by the text of the sources.
@Suite("Completion") struct CompletionTests {
    private static let transports = ["WaybillMQTT", "WaybillSTOMP", "WaybillSSE"]

    /// The types whose public static members complete in a list of options, or in one of their names.
    private static let optionTypes: Set<String> = [
        "OptionName", "CommandOption", "SendOption", "SubscribeOption", "UnsubscribeOption",
        "ConnectOption", "AckOption", "DisconnectOption",
    ]

    /// The types whose public static members complete as a command.
    private static let commandTypes: Set<String> = ["EntryCommand", "EntryCommand.Kind"]

    /// The options that `Waybill` itself declares, because two or more transports have them.
    private static let shared: Set<String> = [
        "timeout", "idempotent", "expectsReply", "responseTopic", "correlationData",
        "waitsForConnection",
        "buffering", "manualAcknowledgement", "userName", "password", "keepAlive",
        "upgradeHeaders", "url",
    ]

    /// What `Waybill` only names, for errors and for `UnsupportedPolicy`.
    private static let namedAlone: Set<String> = [
        "qos", "headers", "contentType", "severalTopics",
    ]

    /// The types that a module of a transport extends by what its protocol adds to answers.
    private static let answers: Set<String> = [
        "Message", "Receipt", "WaybillError", "MessageRouter", "Messages", "Provider",
    ]

    private static func texts(of module: String) throws -> [String] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources").appendingPathComponent(module)
        let names = try #require(FileManager.default.enumerator(atPath: folder.path), "\(module)")
        let files = names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
        try #require(!files.isEmpty, "no files in \(module)")
        return try files.map {
            try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8)
        }
    }

    /// The modules that an import brings: itself, and what it exports again.
    private static func modules(importing module: String) throws -> Set<String> {
        var found: Set<String> = []
        var left = [module]
        while let next = left.popLast() {
            guard found.insert(next).inserted else { continue }
            for text in try texts(of: next) {
                for match in text.matches(of: #/@_exported (?:public )?import (\w+)/#) {
                    left.append(String(match.1))
                }
            }
        }
        return found
    }

    /// The public static members that a module adds to some types; what only the package sees does not complete.
    private static func names(in module: String, of types: Set<String>) throws -> Set<String> {
        var names: Set<String> = []
        for text in try texts(of: module) {
            var isInside = false
            for line in text.split(separator: "\n").map(String.init) {
                if let start = line.prefixMatch(of: #/extension ([\w.]+)/#) {
                    isInside = types.contains(String(start.1))
                }
                if isInside,
                    let found = line.firstMatch(of: #/\bpublic static (?:let|var|func) (\w+)/#)
                {
                    names.insert(String(found.1))
                }
                if line.hasPrefix("}") || line.hasPrefix("extension ") && line.hasSuffix("}") {
                    isInside = false
                }
            }
        }
        return names
    }

    private static func names(in module: String) throws -> Set<String> {
        try names(in: module, of: optionTypes.union(commandTypes))
    }

    @Test("The import of a transport brings Waybill, and no other transport", arguments: transports)
    func modules(transport: String) throws {
        let brought = try Self.modules(importing: transport)
        #expect(brought == [transport, "Waybill"])
    }

    @Test("With the import of one transport, nothing of another completes", arguments: transports)
    func foreign(transport: String) throws {
        var completed: Set<String> = []
        for module in try Self.modules(importing: transport) {
            completed.formUnion(try Self.names(in: module))
        }
        for other in Self.transports where other != transport {
            let foreign = try Self.names(in: other).intersection(completed)
            #expect(foreign == [], "\(other)")
        }
    }

    @Test("Waybill declares only what two or more transports have")
    func home() throws {
        let declared = try Self.names(in: "Waybill", of: Self.optionTypes)
        #expect(declared == Self.shared.union(Self.namedAlone))
        var takers: [String: Set<String>] = [:]
        for transport in Self.transports {
            for text in try Self.texts(of: transport) {
                for match in text.matches(of: #/\.take\(\s*\.(\w+)/#) {
                    takers[String(match.1), default: []].insert(transport)
                }
                // WaybillSession takes it for all of them.
                if text.contains(".address(statedIn: ") {
                    takers["url", default: []].insert(transport)
                }
            }
        }
        for option in Self.shared {
            let found = takers[option] ?? []
            #expect(found.count >= 2, "\(option): \(found.sorted())")
        }
    }

    /// The public types of a module, and the public members that it adds to answers.
    private static func answers(of module: String) throws -> Set<String> {
        var names: Set<String> = []
        for text in try texts(of: module) {
            var isInside = false
            for line in text.split(separator: "\n").map(String.init) {
                let type =
                    #/public (?:final |indirect )?(?:struct|class|enum|actor|protocol) (\w+)/#
                if let found = line.prefixMatch(of: type) { names.insert(String(found.1)) }
                if let start = line.prefixMatch(of: #/extension (\w+)/#) {
                    isInside = answers.contains(String(start.1))
                }
                if isInside, let found = line.firstMatch(of: #/\bpublic (?:var|func) (\w+)/#) {
                    names.insert(String(found.1))
                }
                if line.hasPrefix("}") || line.hasPrefix("extension ") && line.hasSuffix("}") {
                    isInside = false
                }
            }
        }
        return names
    }

    @Test("What only one protocol has in its answers is with its transport", arguments: transports)
    func inbound(transport: String) throws {
        let own: [String: Set<String>] = [
            "WaybillMQTT": [
                "MQTTReason", "MQTTConnack", "LateDeliveryPolicy", "mqttReason", "connack",
                "isSessionPresent", "clientIdentifier",
            ],
            "WaybillSTOMP": ["STOMPServerError"],
            "WaybillSSE": ["event", "EventStreamResponse"],
        ]
        let expected = try #require(own[transport])
        let found = try Self.answers(of: transport)
        #expect(found.isSuperset(of: expected), "\(expected.subtracting(found).sorted())")
        for other in try Self.modules(importing: transport).subtracting([transport]) {
            #expect(try Self.answers(of: other).isDisjoint(with: expected), "\(other)")
        }
    }

    @Test("No public name of Waybill begins with the name of a protocol")
    func unnamed() throws {
        let named = try Self.texts(of: "Waybill").flatMap { text in
            text.split(separator: "\n").map(String.init).filter { line in
                line.contains(
                    #/\bpublic [\w() ]*(?:struct|class|enum|actor|protocol|func|var|let|typealias) (?i:mqtt|stomp|sse)\w*/#
                )
            }
        }
        #expect(named == [])
    }

    @Test("What each transport adds is found")
    func found() throws {
        let mqtt = try Self.names(in: "WaybillMQTT")
        #expect(mqtt.isSuperset(of: ["retained", "noLocal", "will", "reasonCode", "drainTimeout"]))
        #expect(mqtt.isSuperset(of: ["subscriptionIdentifiers", "expiry", "authenticator"]))
        let stomp = try Self.names(in: "WaybillSTOMP")
        #expect(stomp.isSuperset(of: ["receipt", "ackMode", "transaction", "begin", "commit"]))
        #expect(stomp.isSuperset(of: ["contentLength", "identifier"]))
        let eventStreams = try Self.names(in: "WaybillSSE")
        #expect(eventStreams.isSuperset(of: ["method", "eventTypes", "lastEventID"]))
        #expect(eventStreams.isSuperset(of: ["eventType", "serial"]))
    }
}
