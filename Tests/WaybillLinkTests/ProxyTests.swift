import HTTPWire
import Testing
import WaybillLink
import WireCore
import WireTestSupport

/// Tunnels through a proxy (RFC 9110, 9.3.6), over pairs of streams in memory.
@Suite("Tunnels through a proxy", .timeLimit(.minutes(30))) struct ProxyTests {
    private static let settings = ProxySettings(
        endpoint: Endpoint(host: "proxy", port: 3_128),
        headers: [
            "Proxy-Authorization": ProxySettings.basicCredentials(
                userName: "ada",
                password: "lovelace"
            )
        ]
    )
    private static let target = Endpoint(host: "broker.example", port: 1_883)

    private func dial(
        _ peer: any Dialer,
        _ endpoint: Endpoint = target,
        _ timers: ManualTimers = ManualTimers(),
        _ settings: ProxySettings = settings
    ) async throws(LinkError) -> any ByteStream {
        try await peer.proxied(by: settings)
            .dial(endpoint, timeout: .seconds(10), timers: timers)
    }

    private func driver(_ stream: any ByteStream) -> (Driver<LineCore>, Recorder) {
        let heard = Recorder()
        let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
        driver.start(heard.handler)
        return (driver, heard)
    }

    /// A far end that echoes lines.
    private final class Echo: Dialer {
        let timers = ManualTimers()
        let heard = Recorder()

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let pair = ByteStreamPair()
            Driver(core: LineCore(echoes: true), stream: pair.second, timers: self.timers)
                .start(heard.handler)
            return pair.first
        }
    }

    @Test(
        "The proxy is asked for the far end by name, and then lines come and go",
        arguments: [
            1, 7, 1_000, 1 << 20,
        ]
    )
    func conversation(capacity: Int) async throws {
        let echo = Echo()
        let proxy = ProxyPeer(capacity: capacity, to: echo)
        let timers = ManualTimers()
        let (driver, heard) = driver(try await dial(proxy, Self.target, timers))
        #expect(timers.count == 0)
        #expect(proxy.endpoints == [Self.settings.endpoint])
        #expect(
            proxy.requests == [
                """
                CONNECT broker.example:1883 HTTP/1.1\r
                Host: broker.example:1883\r
                Proxy-Authorization: Basic YWRhOmxvdmVsYWNl\r
                \r

                """
            ]
        )
        let long = String(repeating: "x", count: 5_000)
        for line in ["a", long, ""] { driver.withCore { core, _ in core.send(line) } }
        await heard.wait(events: 3)
        #expect(heard.events == [.line("a"), .line(long), .line("")])
        driver.withCore { core, _ in core.isFinished = true }
        await echo.heard.wait(events: 4)
        #expect(echo.heard.events.last == .ended)
        #expect(heard.ends == [nil])
    }

    @Test("An IPv6 address goes in brackets, and to exempt hosts the way is straight")
    func endpoints() async throws {
        let proxy = ProxyPeer()
        _ = try await dial(proxy, Endpoint(host: "::1", port: 80))
        #expect(proxy.requests[0].hasPrefix("CONNECT [::1]:80 HTTP/1.1\r\nHost: [::1]:80\r\n"))
        // The name of an interface means nothing on another machine (RFC 6874, 4).
        _ = try await dial(proxy, Endpoint(host: "fe80::1%eth0", port: 80))
        #expect(proxy.requests[1].hasPrefix("CONNECT [fe80::1]:80 HTTP/1.1\r\nHost: [fe80::1]:80"))

        var settings = Self.settings
        settings.exemptHosts = ["localhost", ".Example.com", "10.0.0.1"]
        let rows = [
            ("localhost", true), ("LOCALHOST.", true), ("a.localhost", false),
            ("a.example.com", true), ("a.b.example.COM", true), ("example.com", false),
            ("anexample.com", false), ("10.0.0.1", true), ("10.0.0.10", false), ("", false),
        ]
        for (host, isExempt) in rows {
            #expect(settings.exempts(host) == isExempt, "\(host)")
        }
        let straight = ProxyPeer()
        _ = try await dial(straight, Endpoint(host: "localhost", port: 1), ManualTimers(), settings)
        #expect(straight.endpoints == [Endpoint(host: "localhost", port: 1)])
        #expect(straight.requests == [])
    }

    @Test(
        "What comes behind the proxy's answer belongs to the tunnel",
        arguments: [1, 45, 1 << 20]
    )
    func behindTheHead(capacity: Int) async throws {
        let proxy = ProxyPeer(
            .say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfirst\nsecond\nthi"),
            capacity: capacity
        )
        let (_, heard) = driver(try await dial(proxy))
        await heard.wait(events: 2)
        proxy.say("rd\n")
        await heard.wait(events: 3)
        #expect(heard.events == [.line("first"), .line("second"), .line("third")])
    }

    @Test("A reader that stops gets what is behind the answer when it goes on, by sips, too")
    func heldBack() async throws {
        let proxy = ProxyPeer(.say("HTTP/1.1 200 OK\r\n\r\none\ntwo\n"))
        let stream = try await dial(proxy)
        stream.setReading(false)
        let (_, heard) = driver(stream)
        #expect(heard.events == [])
        stream.setReading(true)
        #expect(heard.events == [.line("one"), .line("two")])

        let other = try await dial(ProxyPeer(.say("HTTP/1.1 200 OK\r\n\r\nabcdefg")))
        let sipper = Sipper(other)
        other.start(sipper)
        #expect(sipper.sips.withLock { $0 } == Array("abcdefg".utf8))
    }

    /// Reads two bytes in each turn.
    private final class Sipper: ByteStreamReceiver {
        private let stream: any ByteStream
        let sips = Locked<[UInt8]>([])

        init(_ stream: any ByteStream) { self.stream = stream }

        func streamIsReadable() {
            var space = [UInt8](repeating: 0, count: 2)
            let outcome = space.withUnsafeMutableBytes { try? stream.read(into: $0) }
            guard case .bytes(let count)? = outcome else { return }
            sips.withLock { $0 += space.prefix(count) }
        }

        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }

    @Test("A refusal has its status and its words, and the connection is closed")
    func refused() async throws {
        let proxy = ProxyPeer(.say("HTTP/1.1 407 Who\r\nContent-Length: 5\r\n\r\nareyou?"))
        let timers = ManualTimers()
        await #expect(
            throws: LinkError.proxyRefused(
                HTTPResponseHead(status: 407, reason: "Who", headers: ["Content-Length": "5"]),
                body: Array("areyo".utf8)
            )
        ) { try await dial(proxy, Self.target, timers) }
        #expect(proxy.ends == 1)
        #expect(timers.count == 0)
    }

    @Test(
        "Other answers are typed errors",
        arguments: [
            (.hangUp(""), .proxy(.endOfStream)),
            (.hangUp("HTTP/1.1 200 OK\r\n"), .proxy(.endOfStream)),
            (.say("SSH-2.0-OpenSSH\r\n\r\n"), .proxyViolation(.malformedStatusLine)),
            (
                .say("HTTP/1.1 200 \(String(repeating: "x", count: 70_000))"),
                .proxyViolation(.headTooLarge(maximum: 65_536))
            ),
        ] as [(ProxyPeer.Answer, LinkError)]
    )
    func failures(answer: ProxyPeer.Answer, expected: LinkError) async {
        let proxy = ProxyPeer(answer)
        await #expect(throws: expected) { try await dial(proxy) }
        #expect(proxy.ends == 1)
    }

    @Test("A proxy that cannot be reached is told from a far end that cannot")
    func unreachable() async {
        struct Refusing: Dialer {
            func dial(
                _ endpoint: Endpoint,
                timeout: Duration,
                timers: any TimerSource
            ) async throws(LinkError) -> any ByteStream {
                throw .refused
            }
        }
        await #expect(throws: LinkError.proxy(.refused)) { try await dial(Refusing()) }
    }

    @Test("What cannot be asked for is refused before the proxy is connected to")
    func invalid() async {
        let proxy = ProxyPeer()
        await #expect(throws: LinkError.proxyInvalid(.invalidTarget)) {
            try await dial(proxy, Endpoint(host: "a b", port: 1))
        }
        #expect(proxy.endpoints == [])
    }

    @Test("A proxy that stalls is given up when the time is over, with what it has said till then")
    func stalled() async throws {
        for (said, expected) in [
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP", LinkError.proxy(.timedOut)),
            (
                "HTTP/1.1 503 Busy\r\n\r\nla",
                .proxyRefused(HTTPResponseHead(status: 503, reason: "Busy"), body: [0x6C, 0x61])
            ),
        ] {
            let proxy = ProxyPeer(.say(said))
            let timers = ManualTimers()
            let attempt = Task { () -> LinkError? in
                do throws(LinkError) {
                    _ = try await dial(proxy, Self.target, timers)
                    return nil
                } catch { return error }
            }
            try await waitUntil { !proxy.requests.isEmpty && proxy.isQuiet }
            try #require(timers.count == 1, "nothing limits the handshake")
            timers.advance(by: .seconds(10))
            #expect(await attempt.value == expected)
            #expect(proxy.ends == 1)
            #expect(timers.count == 0)
        }
    }

    @Test("Cancelled is cancelled, and nothing stays open")
    func cancelled() async throws {
        let proxy = ProxyPeer(.say(""))
        let timers = ManualTimers()
        let attempt = Task { () -> LinkError? in
            do throws(LinkError) {
                _ = try await dial(proxy, Self.target, timers)
                return nil
            } catch { return error }
        }
        try await waitUntil { !proxy.requests.isEmpty }
        attempt.cancel()
        #expect(await attempt.value == .cancelled)
        #expect(proxy.ends == 1)
        #expect(timers.count == 0)
    }

    @Test("Credentials are in no description")
    func descriptions() {
        let error = LinkError.proxyRefused(
            HTTPResponseHead(status: 407, reason: "no", headers: ["Secret": "lovelace"]),
            body: Array("lovelace".utf8)
        )
        let settings = Optional(Self.settings)
        for text in [
            "\(Self.settings)", "\(settings as Any)", String(reflecting: settings), "\(error)",
        ] {
            #expect(!text.contains("lovelace") && !text.contains("YWRh"), "\(text)")
        }
        #expect("\(error)" == "the proxy answered with 407")
        #expect("\(LinkError.proxy(.refused))".hasPrefix("the proxy: "))
    }

    #if os(Linux)
        @Test(
            "TLS runs within the tunnel, with the name of the far end",
            .enabled(if: Certificates.areThere, Certificates.absence),
            arguments: [100, 1 << 20]
        )
        func secured(capacity: Int) async throws {
            let server = try TLSPeer()
            let proxy = ProxyPeer(capacity: capacity, to: server)
            var settings = TLSSettings()
            settings.authorities = [.file(Certificates.path("ca.pem"))]
            let dialer = proxy.proxied(by: Self.settings).secured(by: settings)
            let stream = try await dialer.dial(
                Endpoint(host: "localhost", port: 8_883),
                timeout: .seconds(10),
                timers: ManualTimers()
            )
            #expect(stream.tls?.version == "TLSv1.3")
            let (driver, heard) = driver(stream)
            let lines = ["a", String(repeating: "b", count: 50_000), "c"]
            for line in lines { driver.withCore { core, _ in core.send(line) } }
            await heard.wait(events: 3)
            #expect(heard.events == lines.map { .line($0) })
            #expect(proxy.requests.count == 1)
            #expect(proxy.requests[0].hasPrefix("CONNECT localhost:8883 "))
            // A TLS handshake record (RFC 8446, 5.1).
            #expect(proxy.firstBytes.first == 22)
            driver.withCore { core, _ in core.isFinished = true }
            await server.heard.wait(events: 4)
            #expect(server.heard.events.last == .ended)
        }

        @Test(
            "A far end with another name is refused through a proxy, too",
            .enabled(if: Certificates.areThere, Certificates.absence)
        )
        func wrongName() async throws {
            let proxy = ProxyPeer(to: try TLSPeer())
            var settings = TLSSettings()
            settings.authorities = [.file(Certificates.path("ca.pem"))]
            let dialer = proxy.proxied(by: Self.settings).secured(by: settings)
            await #expect(throws: LinkError.tls(.hostMismatch("elsewhere.example"))) {
                try await dialer.dial(
                    Endpoint(host: "elsewhere.example", port: 8_883),
                    timeout: .seconds(10),
                    timers: ManualTimers()
                )
            }
        }
    #endif
}
