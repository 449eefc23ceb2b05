import Foundation
import Testing

/// Each configuration, group and policy has one initialiser with all its properties, by the text of the sources.
@Suite("Initialisers of configurations") struct InitialiserTests {
    /// Where a type is declared, below `Sources`, and its name.
    struct Place: Sendable, CustomTestStringConvertible {
        var file: String
        var type: String

        var testDescription: String { "\(type) of \(file)" }
    }

    private static let policies = [
        "OfflinePolicy", "ReconnectionPolicy", "TLSOptions", "WebSocketOptions", "FailoverOptions",
    ]

    static let places: [Place] =
        policies.map { Place(file: "Waybill/Transport/\($0).swift", type: $0) } + [
            Place(
                file: "Waybill/Provider/ProviderConfiguration.swift",
                type: "ProviderConfiguration"
            ),
            Place(file: "Waybill/Provider/RetryPolicy.swift", type: "RetryPolicy"),
            Place(file: "WaybillMQTT/LateDeliveryPolicy.swift", type: "LateDeliveryPolicy"),
            Place(file: "WaybillMQTT/MQTTRedirectPolicy.swift", type: "MQTTRedirectPolicy"),
            Place(file: "WaybillMQTT/AdaptiveKeepAlive.swift", type: "AdaptiveKeepAlive"),
        ]
        + [
            ("MQTT", ["Session", "KeepAlive", "Timeouts", "Limits", "TopicAliases", "Replies"]),
            ("STOMP", ["HeartBeat", "Timeouts", "Limits"]),
            ("SSE", ["Timeouts", "Limits"]),
        ].flatMap { transport, groups in
            let path = "Waybill\(transport)/\(transport)Configuration"
            return [Place(file: "\(path).swift", type: "\(transport)Configuration")]
                + groups.map { Place(file: "\(path)+Groups.swift", type: $0) }
        }

    private static func text(of file: String) throws -> String {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources")
        return try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
    }

    /// The lines of a type's body, without the spaces that its own members begin with.
    private static func members(of type: String, in text: String) throws -> [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let start = try #require(lines.firstIndex { $0.contains("public struct \(type):") })
        let margin = String(lines[start].prefix { $0 == " " })
        let end = try #require(lines[start...].firstIndex(of: margin + "}"))
        let own = margin + "    "
        return lines[start..<end].dropFirst().filter { $0.hasPrefix(own) }
            .map { String($0.dropFirst(own.count)) }
    }

    /// The parameters of an initialiser, each with whether it has a default.
    private static func parameters(_ initialiser: String) -> [(name: String, hasDefault: Bool)] {
        var parameters: [String] = [""]
        var depth = 0
        for character in initialiser {
            switch character {
            case "(", "[", "{": depth += 1
            case ")", "]", "}": depth -= 1
            default: break
            }
            if depth < 0 { break }
            if character == ",", depth == 0 {
                parameters.append("")
            } else {
                parameters[parameters.count - 1].append(character)
            }
        }
        return parameters.compactMap { parameter in
            // A label before the name is dropped: `where condition: ...`.
            guard let head = parameter.firstMatch(of: #/(\w+): /#) else { return nil }
            return (String(head.1), parameter.contains(" = "))
        }
    }

    @Test("One initialiser has every property, each with its default", arguments: places)
    func complete(place: Place) throws {
        let members = try Self.members(of: place.type, in: Self.text(of: place.file))
        let properties = members.compactMap {
            $0.prefixMatch(of: #/public var (\w+)/#).map { String($0.1) }
        }
        try #require(!properties.isEmpty)
        let body = members.joined(separator: "\n")
        let complete = body.components(separatedBy: "public init(").dropFirst()
            .map(Self.parameters)
            .first { $0.count == properties.count }
        let parameters = try #require(complete, "no initialiser has all of \(properties)")
        #expect(parameters.map(\.name).sorted() == properties.sorted())
        for parameter in parameters {
            #expect(parameter.hasDefault, "\(parameter.name)")
        }
        // A default is stated once, by the initialiser.
        for member in members where member.hasPrefix("public var ") {
            #expect(!member.contains(" = "), "\(member)")
        }
    }
}
