import Foundation
import Testing

/// The web platform's cases for event streams, in a neutral form (`event-stream-cases.json`).
struct WebPlatformCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Response: Decodable, Sendable {
        let status: Int
        let headers: [String: String]
        let body: String

        enum CodingKeys: String, CodingKey {
            case status, headers
            case body = "body_base64"
        }

        var bytes: [UInt8] { Data(base64Encoded: body).map { [UInt8]($0) } ?? [] }
    }

    struct Event: Decodable, Sendable, Equatable {
        let type: String
        let data: String
        let lastEventID: String

        enum CodingKeys: String, CodingKey {
            case type, data
            case lastEventID = "last_event_id"
        }
    }

    struct Reconnect: Decodable, Sendable {
        let delay: Int?
        let lastEventID: String?

        enum CodingKeys: String, CodingKey {
            case delay = "delay_ms"
            case lastEventID = "last_event_id_header"
        }
    }

    let name: String
    let kind: String
    let responses: [Response]
    let events: [Event]?
    let reconnect: Reconnect?

    enum CodingKeys: String, CodingKey {
        case name, kind, responses
        case events = "expected_events"
        case reconnect = "expected_reconnect"
    }

    var testDescription: String { name }

    private struct Collection: Decodable {
        let cases: [WebPlatformCase]
    }

    static let all: [WebPlatformCase] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("event-stream-cases.json")
        guard let data = try? Data(contentsOf: file),
            let collection = try? JSONDecoder().decode(Collection.self, from: data)
        else { return [] }
        return collection.cases
    }()

    static let parse = all.filter { $0.kind == "parse" }
}
