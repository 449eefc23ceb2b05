import Foundation

/// The web platform's cases for event streams, in a neutral form (`event-stream-cases.json`).
package struct WebPlatformCase: Decodable, Sendable, CustomStringConvertible {
    /// The request that the case answers.
    package struct ExpectedRequest: Decodable, Sendable {
        package let method: String?
        package let path: String?
        package let headers: [String: String]?
        package let absentHeaders: [String]?

        enum CodingKeys: String, CodingKey {
            case method, path, headers
            case absentHeaders = "absent_headers"
        }
    }

    package struct Response: Decodable, Sendable {
        package let status: Int
        package let headers: [String: String]
        private let body: String
        private let raw: String
        package let request: ExpectedRequest?

        enum CodingKeys: String, CodingKey {
            case status, headers
            case body = "body_base64"
            case raw = "raw_base64"
            case request = "expect_request"
        }

        package var bytes: [UInt8] { Data(base64Encoded: body).map { [UInt8]($0) } ?? [] }
        /// The whole response, head included.
        package var rawBytes: [UInt8] { Data(base64Encoded: raw).map { [UInt8]($0) } ?? [] }
    }

    package struct Event: Decodable, Sendable, Equatable {
        package let type: String
        package let data: String
        package let lastEventID: String

        package init(type: String, data: String, lastEventID: String) {
            self.type = type
            self.data = data
            self.lastEventID = lastEventID
        }

        enum CodingKeys: String, CodingKey {
            case type, data
            case lastEventID = "last_event_id"
        }
    }

    package struct Reconnect: Decodable, Sendable {
        package let delay: Int?
        package let lastEventID: String?

        enum CodingKeys: String, CodingKey {
            case delay = "delay_ms"
            case lastEventID = "last_event_id_header"
        }
    }

    package let name: String
    package let kind: String
    package let responses: [Response]
    package let events: [Event]?
    package let reconnect: Reconnect?

    enum CodingKeys: String, CodingKey {
        case name, kind, responses
        case events = "expected_events"
        case reconnect = "expected_reconnect"
    }

    package var description: String { name }

    private struct Collection: Decodable {
        let cases: [WebPlatformCase]
    }

    package static let all: [WebPlatformCase] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("event-stream-cases.json")
        guard let data = try? Data(contentsOf: file),
            let collection = try? JSONDecoder().decode(Collection.self, from: data)
        else { return [] }
        return collection.cases
    }()

    package static let parse = all.filter { $0.kind == "parse" }
}
