import HTTPWire
import Testing
import Waybill
import WaybillLink
import WaybillSession

@Suite("Proxies, as an app describes them") struct ProxyOptionsTests {
    private func refusal(_ options: ProxyOptions) -> WaybillError? {
        do throws(WaybillError) {
            _ = try ProxySettings(options)
            return nil
        } catch { return error }
    }

    @Test("Host, port and credentials reach the link (RFC 7617, 2)")
    func settings() throws {
        let plain = try ProxySettings(ProxyOptions(host: "[::1]", port: 3_128))
        #expect(plain.endpoint == Endpoint(host: "::1", port: 3_128))
        #expect(plain.headers.isEmpty)
        let options = ProxyOptions(
            host: "p",
            port: 1,
            userName: "Aladdin",
            password: "open sesame",
            headers: ["X-Team": "waybill"],
            exemptHosts: [".example.com", "[::1]"]
        )
        let rich = try ProxySettings(options)
        #expect(rich.headers.first("x-team") == "waybill")
        #expect(
            rich.headers.first("proxy-authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        )
        #expect(rich.exemptHosts == [".example.com", "::1"])
        // Encoded in UTF-8 (RFC 7617, 2.1).
        let test = try ProxySettings(
            ProxyOptions(host: "p", port: 1, userName: "test", password: "123£")
        )
        #expect(test.headers.first("proxy-authorization") == "Basic dGVzdDoxMjPCow==")
        // A header field in the options takes precedence.
        var own = options
        own.headers = ["Proxy-Authorization": "Bearer t"]
        #expect(try ProxySettings(own).headers.all("proxy-authorization") == ["Bearer t"])
    }

    @Test("What cannot be is refused before anything is connected to")
    func refusals() {
        let rows = [
            ProxyOptions(host: "p", port: 0), ProxyOptions(host: "p", port: 65_536),
            ProxyOptions(host: "p", port: -1), ProxyOptions(host: "", port: 1),
            ProxyOptions(host: "http://p", port: 1), ProxyOptions(host: "a b", port: 1),
            ProxyOptions(host: "p", port: 1, userName: "a:b"),
            ProxyOptions(host: "p", port: 1, userName: "a", password: "b\n"),
            ProxyOptions(host: "p", port: 1, headers: ["Host": "x"]),
            ProxyOptions(host: "p", port: 1, headers: ["content-length": "1"]),
            ProxyOptions(host: "p", port: 1, headers: ["A B": "x"]),
            ProxyOptions(host: "p", port: 1, headers: ["A": "x\r\nB: y"]),
            ProxyOptions(host: "p", port: 1, exemptHosts: ["a", ""]),
            ProxyOptions(host: "p", port: 1, exemptHosts: ["."]),
        ]
        for row in rows { #expect(refusal(row)?.code == .invalidEntry, "\(row)") }
    }

    @Test("A proxy's URL contains its address and the credentials")
    func urls() throws {
        let proxy = try ProxyOptions(url: "http://a%40b:c%3Ad@proxy.example:3128/")
        #expect(
            proxy
                == ProxyOptions(
                    host: "proxy.example",
                    port: 3_128,
                    userName: "a@b",
                    password: "c:d"
                )
        )
        #expect(try ProxyOptions(url: "HTTP://[::1]").description == "[::1]:80")
        for (url, code) in [
            ("proxy", WaybillError.Code.invalidEntry), ("http://", .invalidEntry),
            ("http://p/path", .invalidEntry), ("https://p", .unsupported),
            ("socks5://p", .unsupported),
        ] {
            let error = #expect(throws: WaybillError.self) { try ProxyOptions(url: url) }
            #expect(error?.code == code, "\(url)")
        }
    }

    @Test("Neither user nor password nor fields are in a description")
    func descriptions() {
        let options = ProxyOptions(
            host: "p",
            port: 1,
            userName: "ada",
            password: "lovelace",
            headers: ["X-Key": "lovelace"]
        )
        let whole = (proxy: Optional(options), other: 1)
        for text in ["\(options)", String(reflecting: options), "\(whole)"] {
            #expect(text.contains("p:1"))
            #expect(!text.contains("ada") && !text.contains("lovelace"), "\(text)")
        }
    }

    @Test(
        "A proxy's no in the words of users",
        arguments: [
            (407, WaybillError.Code.unauthorized), (403, .unauthorized), (502, .connectionRefused),
            (503, .connectionRefused), (504, .connectionRefused), (400, .rejected),
            (302, .rejected),
        ]
    )
    func refused(status: Int, code: WaybillError.Code) throws {
        let head = HTTPResponseHead(status: status, reason: "No", headers: ["A": "b"])
        let error = WaybillError(LinkError.proxyRefused(head, body: [0x78]))
        #expect(error.code == code)
        #expect(error.message == "the proxy answered with \(status)")
        #expect(error.peerReason == "\(status) No")
        let refusal = try #require(error.underlying as? HTTPRefusal)
        #expect(refusal.status == status && refusal.isFromProxy)
        #expect(refusal.headers["A"] == "b" && refusal.body == Payload([0x78]))
        let upgrade = WaybillError(LinkError.upgradeRefused(head, body: []))
        #expect((upgrade.underlying as? HTTPRefusal)?.isFromProxy == false)
    }

    @Test(
        "Other errors of a proxy",
        arguments: [
            (LinkError.proxy(.refused), WaybillError.Code.connectionRefused),
            (.proxy(.timedOut), .timedOut), (.proxy(.endOfStream), .connectionLost),
            (.proxyViolation(.malformedStatusLine), .protocolViolation),
            (.proxyInvalid(.invalidTarget), .invalidEntry),
        ]
    )
    func errors(fault: LinkError, code: WaybillError.Code) {
        let error = WaybillError(fault)
        #expect(error.code == code)
        #expect(error.message == fault.description)
        // The socket's failure is public, also on the way to a proxy.
        #expect((error.socketFailure?.name == "ECONNREFUSED") == (fault == .proxy(.refused)))
    }
}
