import Foundation
import Testing
import Waybill
import WaybillLink
import WaybillSession

@Suite("Service addresses") struct ServiceAddressTests {
    private static let schemes: [ServiceAddress.Scheme] = [
        .tcp("mqtt", port: 1_883), .http("ws", port: 80),
    ]

    struct Row: Sendable, CustomTestStringConvertible {
        let url: String
        let endpoint: String
        var scheme = "mqtt"
        var user: String?
        var password: String?
        var path = "/"

        var testDescription: String { url }
    }

    static let rows: [Row] = [
        Row(url: "mqtt://h", endpoint: "h:1883"),
        Row(url: "mqtt://h/", endpoint: "h:1883"),
        Row(url: "MQTT://h:1", endpoint: "h:1"),
        Row(url: "mqtt://h:", endpoint: "h:1883"),
        Row(url: "mqtt://h:65535", endpoint: "h:65535"),
        Row(url: "mqtt://127.0.0.1", endpoint: "127.0.0.1:1883"),
        Row(url: "mqtt://[::1]", endpoint: "[::1]:1883"),
        Row(url: "mqtt://[2001:db8::1]:18/", endpoint: "[2001:db8::1]:18"),
        Row(url: "mqtt://u@h", endpoint: "h:1883", user: "u"),
        Row(url: "mqtt://u:p@h", endpoint: "h:1883", user: "u", password: "p"),
        Row(url: "mqtt://u:@h", endpoint: "h:1883", user: "u", password: ""),
        Row(
            url: "mqtt://a%40b:%3A%2F%C3%A9@[::1]:2",
            endpoint: "[::1]:2",
            user: "a@b",
            password: ":/é"
        ),
        Row(url: "ws://h", endpoint: "h:80", scheme: "ws"),
        Row(url: "ws://h/", endpoint: "h:80", scheme: "ws"),
        Row(url: "WS://h:8080/mqtt", endpoint: "h:8080", scheme: "ws", path: "/mqtt"),
        Row(url: "ws://h/a/b/", endpoint: "h:80", scheme: "ws", path: "/a/b/"),
        Row(url: "ws://h/a%20b?c=%26&d", endpoint: "h:80", scheme: "ws", path: "/a%20b?c=%26&d"),
        Row(url: "ws://h?x=1", endpoint: "h:80", scheme: "ws", path: "/?x=1"),
        Row(url: "ws://h/?", endpoint: "h:80", scheme: "ws", path: "/?"),
        Row(
            url: "ws://u:p@[::1]:9/p?q",
            endpoint: "[::1]:9",
            scheme: "ws",
            user: "u",
            password: "p",
            path: "/p?q"
        ),
    ]

    @Test(
        "The field Host names the port where it is not the scheme's, and never a zone (RFC 6874, 4)",
        arguments: [
            ("ws://h", "h"), ("ws://h:80", "h"), ("ws://h:8080", "h:8080"), ("ws://[::1]", "[::1]"),
            ("ws://[::1]:81", "[::1]:81"), ("ws://[fe80::1%25lo]", "[fe80::1]"),
            ("ws://[fe80::1%25lo]:81", "[fe80::1]:81"),
        ]
    )
    func hostField(url: String, field: String) throws {
        #expect(try address(url).hostField == field)
    }

    private func address(_ text: String) throws -> ServiceAddress {
        try ServiceAddress(ServiceAddress.url(text), for: "MQTT", schemes: Self.schemes)
    }

    @Test("What a URL says", arguments: rows)
    func reads(row: Row) throws {
        let address = try address(row.url)
        #expect(address.endpoint.description == row.endpoint)
        #expect(address.scheme.name == row.scheme)
        #expect(address.userName == row.user)
        #expect(address.password == row.password)
        #expect(address.path == row.path)
    }

    @Test(
        "What is no such URL",
        arguments: [
            ("", "invalidEntry"), ("h", "invalidEntry"), ("//h", "invalidEntry"),
            ("mqtt:", "invalidEntry"), ("mqtt://", "invalidEntry"), ("mqtt:///a", "invalidEntry"),
            ("mqtt://:1883", "invalidEntry"), ("mqtt://h:0", "invalidEntry"),
            ("mqtt://h:65536", "invalidEntry"), ("mqtt://h:-1", "invalidEntry"),
            ("mqtt://h:x", "invalidEntry"), ("mqtt://[::1", "invalidEntry"),
            ("mqtt://h/path", "invalidEntry"), ("mqtt://h//", "invalidEntry"),
            ("ws://", "invalidEntry"), ("ws:///p", "invalidEntry"), ("ws://h:0/", "invalidEntry"),
            ("ws://h/p#f", "invalidEntry"), ("ws://a b/", "invalidEntry"),
            ("ws://a%20b/", "invalidEntry"), ("ws://a%2Fb/", "invalidEntry"),
            ("mqtts://h", "unsupported"), ("http://h", "unsupported"),
            ("mailto:a@b", "unsupported"),
        ]
    )
    func refuses(url: String, code: String) {
        #expect {
            try address(url)
        } throws: {
            ($0 as? WaybillError)?.code.name == code
        }
    }

    @Test("The words name the protocol and a scheme that would do")
    func words() {
        #expect {
            try address("stomp://h")
        } throws: {
            ($0 as? WaybillError)?.message
                == "MQTT is not spoken over stomp://; the URL can begin with mqtt://, ws://"
        }
        #expect {
            try address("h")
        } throws: {
            ($0 as? WaybillError)?.message == "the URL has no scheme, such as mqtt://"
        }
    }
}
