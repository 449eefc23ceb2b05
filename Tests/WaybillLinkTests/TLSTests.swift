#if os(Linux)
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    @Suite("TLS is there when it must be") struct TLSRequired {
        @Test(
            "With WAYBILL_REQUIRE_SERVERS=1 there are certificates, and OpenSSL's library is found",
            .enabled(if: TestRequirements.areRequired, "WAYBILL_REQUIRE_SERVERS is not 1")
        )
        func required() async throws {
            #expect(Certificates.areThere)
            _ = try RawTLSServer()
        }
    }

    @Suite(
        "TLS over a pair in memory",
        .enabled(if: Certificates.areThere, Certificates.absence),
        .timeLimit(.minutes(30))
    )
    struct TLSTests {
        /// Connects and returns the error, which comes at once or with the first answer.
        private func fault(
            _ peer: TLSPeer,
            host: String = "localhost",
            _ change: (inout TLSSettings) -> Void = { _ in }
        ) async throws -> LinkError? {
            do {
                let client = try await peer.connect(host: host, change)
                client.driver.withCore { core, _ in core.send("secret") }
                // The pair carries everything at once, so an answer that has not come never will.
                return try #require(client.heard.ends.first, "the connection was not refused")
            } catch let error as LinkError {
                // No bytes of the application may leave before the server is verified.
                #expect(peer.heard.events.filter { $0 != .ended }.isEmpty)
                return error
            }
        }

        @Test("What one side sends the other hears, in order, and answers come back")
        func conversation() async throws {
            let peer = try TLSPeer()
            let client = try await peer.connect()
            let lines = ["a", String(repeating: "b", count: 100_000), ""]
            for line in lines { client.driver.withCore { core, _ in core.send(line) } }
            #expect(client.heard.events == lines.map { .line($0) })
            #expect(client.stream.tls?.version == "TLSv1.3")
            #expect(client.stream.tls?.isResumed == false)
            client.driver.withCore { core, _ in core.isFinished = true }
            #expect(peer.heard.events.last == .ended)
            #expect(client.heard.ends == [nil])
        }

        @Test(
            "Bytes go through a narrow pipe, whatever its width",
            arguments: [1, 7, 1_000, 70_000]
        )
        func narrow(capacity: Int) async throws {
            let peer = try TLSPeer(capacity: capacity)
            let client = try await peer.connect()
            let long = String(repeating: "x", count: 40_000)
            for line in [long, "tail"] { client.driver.withCore { core, _ in core.send(line) } }
            // Closing right after the last line loses none of its bytes.
            client.driver.withCore { core, _ in core.isFinished = true }
            #expect(peer.heard.events.prefix(2) == [.line(long), .line("tail")])
        }

        @Test("A reader that stops holds the writer back, and gets what was left when it goes on")
        func heldBack() async throws {
            let peer = try TLSPeer(capacity: 65_536)
            let client = try await peer.connect()
            client.driver.withCore { core, _ in core.send("first") }
            peer.setReading(false)
            let chunk = String(repeating: "y", count: 1 << 20)
            for _ in 0..<2 { client.driver.withCore { core, _ in core.send(chunk) } }
            #expect(peer.heard.events == [.line("first")])
            #expect(client.driver.unsentByteCount > 1 << 20)
            client.driver.setReading(false)
            peer.setReading(true)
            #expect(peer.heard.events.count == 3)
            #expect(client.heard.events == [.line("first")])
            client.driver.setReading(true)
            #expect(client.heard.events.count == 3)
            #expect(client.driver.unsentByteCount == 0)
        }

        @Test(
            "A certificate that is not right is refused for what is wrong with it",
            arguments: [
                ("expired", TLSFault.expired), ("notyet", .notYetValid),
                ("untrusted", .unknownAuthority("/CN=Waybill test otherca")),
                ("selfsigned", .selfSigned),
                ("clientonly", .wrongPurpose), ("sha1", .weakCertificate),
                ("weak", .weakCertificate), ("wronghost", .hostMismatch("localhost")),
                ("nameonly", .alternativeNameMissing("localhost")),
            ]
        )
        func refused(name: String, expected: TLSFault) async throws {
            let peer = try TLSPeer(name)
            #expect(try await fault(peer) == .tls(expected))
            // The opt-out accepts the certificate.
            let open = try TLSPeer(name)
            let client = try await open.connect { $0.acceptsAnyCertificate = true }
            client.driver.withCore { core, _ in core.send("x") }
            #expect(client.heard.events == [.line("x")])
        }

        @Test(
            "The certificate must name the host, by name or by address",
            arguments: [
                ("localhost", true), ("LOCALHOST", true), ("localhost.", true), ("127.0.0.1", true),
                ("::1", true), ("a.waybill.test", true), ("waybill.test", false),
                ("a.b.waybill.test", false), ("127.0.0.2", false), ("::2", false),
                ("example.com", false),
            ]
        )
        func names(host: String, isNamed: Bool) async throws {
            let peer = try TLSPeer()
            if isNamed {
                _ = try await peer.connect(host: host)
            } else {
                #expect(try await fault(peer, host: host) == .tls(.hostMismatch(host)))
                let named = try TLSPeer()
                _ = try await named.connect(host: host) { $0.serverName = "localhost" }
            }
        }

        @Test(
            "A wildcard for a part of a label names no host (RFC 9525, 6.3)",
            arguments: [
                "foo.waybill.test", "ab.waybill.test", "abc.waybill.test", "f.waybill.test",
            ]
        )
        func partialWildcards(host: String) async throws {
            // Its names are f*.waybill.test, *b.waybill.test and a*c.waybill.test.
            let peer = try TLSPeer("partial")
            #expect(try await fault(peer, host: host) == .tls(.hostMismatch(host)))
            // A wildcard for the whole label names it.
            let whole = try TLSPeer()
            _ = try await whole.connect(host: host)
        }

        @Test(
            "Authorities are taken as PEM and DER, from files and memory; an intermediate or a leaf will do"
        )
        func authorities() async throws {
            for (name, authority) in [
                ("server", TLSSettings.Material.bytes(try Certificates.bytes("ca.pem"))),
                ("server", .bytes(try Certificates.bytes("server.der"))),
                ("selfsigned", .file(Certificates.path("selfsigned.pem"))),
                ("chained", .file(Certificates.path("ca.pem"))),
                ("chained", .file(Certificates.path("middle.pem"))),
            ] {
                let peer = try TLSPeer(name)
                _ = try await peer.connect { $0.authorities = [authority] }
            }
            // The system trusts none of the test authorities.
            let peer = try TLSPeer()
            #expect(
                try await fault(peer) { $0.authorities = [] }
                    == .tls(.unknownAuthority("/CN=Waybill test ca"))
            )
        }

        @Test("A pinned key must be in the chain, also where any certificate will do")
        func pins() async throws {
            let pin = try Certificates.pin()
            let other = [UInt8](repeating: 7, count: 32)
            for takesAny in [false, true] {
                let peer = try TLSPeer()
                _ = try await peer.connect {
                    $0.pinnedPublicKeys = [other, pin]
                    $0.acceptsAnyCertificate = takesAny
                }
                let wrong = try TLSPeer()
                let error = try await fault(wrong) {
                    $0.pinnedPublicKeys = [other]
                    $0.acceptsAnyCertificate = takesAny
                }
                #expect(error == .tls(.pinMismatch))
            }
        }

        @Test("A server that wants a certificate takes the right one, in whatever form it is given")
        func identities() async throws {
            let certificate = TLSSettings.Material.file(Certificates.path("client.pem"))
            let identities: [TLSSettings.Identity] = [
                .certificate(
                    certificate,
                    key: .file(Certificates.path("client.key")),
                    password: nil
                ),
                .certificate(
                    .bytes(try Certificates.bytes("client-chain.pem")),
                    key: .bytes(try Certificates.bytes("client-locked.key")),
                    password: "secret"
                ),
                .pkcs12(.file(Certificates.path("client.p12")), password: "secret"),
            ]
            for identity in identities {
                let peer = try TLSPeer { $0.authorities = [.file(Certificates.path("ca.pem"))] }
                let client = try await peer.connect { $0.identity = identity }
                client.driver.withCore { core, _ in core.send("x") }
                #expect(client.heard.events == [.line("x")])
            }
        }

        @Test("Without a certificate that it takes, the server's refusal is told as what it is")
        func identityRefused() async throws {
            func asking() throws -> TLSPeer {
                try TLSPeer { $0.authorities = [.file(Certificates.path("ca.pem"))] }
            }
            #expect(try await fault(asking()) == .tls(.certificateRequired))
            let error = try await fault(asking()) {
                $0.identity = .certificate(
                    .file(Certificates.path("badclient.pem")),
                    key: .file(Certificates.path("badclient.key")),
                    password: nil
                )
            }
            guard case .tls(.certificateRefused) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }

        @Test("What cannot be used to secure a connection is refused before anything is sent")
        func settings() async throws {
            let certificate = TLSSettings.Material.file(Certificates.path("client.pem"))
            let ca = String(decoding: try Certificates.bytes("ca.pem"), as: UTF8.self)
            let damaged = ca.replacing("\nMII", with: "\n!II")
            let der = try Certificates.bytes("server.der")
            let pipe = try Certificates.pipe()
            let changes: [(inout TLSSettings) -> Void] = [
                { $0.authorities = [.file("/nowhere/ca.pem")] },
                { $0.authorities = [.bytes(Array("no certificate".utf8))] },
                { $0.authorities = [.bytes([])] },
                { $0.authorities = [.file(Certificates.path("client.key"))] },
                { $0.identity = .certificate(certificate, key: certificate, password: nil) },
                {
                    $0.identity = .certificate(
                        certificate,
                        key: .file(Certificates.path("server.key")),
                        password: nil
                    )
                },
                {
                    $0.identity = .certificate(
                        certificate,
                        key: .file(Certificates.path("client-locked.key")),
                        password: nil
                    )
                },
                {
                    $0.identity = .pkcs12(.file(Certificates.path("client.p12")), password: "wrong")
                },
                { $0.serverName = "" }, { $0.serverName = "a b" },
                // OpenSSL would match each of these to the certificate's name *.waybill.test.
                { $0.serverName = ".test" }, { $0.serverName = ".waybill.test" },
                { $0.serverName = "*.waybill.test" },
                // One of several certificates, or the text after it, is unreadable.
                { $0.authorities = [.bytes(Array((ca + damaged).utf8))] },
                { $0.authorities = [.bytes(Array((ca + ca.dropLast(100)).utf8))] },
                { $0.authorities = [.bytes(der + [0])] },
                // A pipe without a writer must not block the read.
                { $0.authorities = [.file(pipe)] },
            ]
            for change in changes {
                let peer = try TLSPeer()
                guard case .tls(.invalidSettings(let words)) = try await fault(peer, change) else {
                    Issue.record("taken")
                    continue
                }
                #expect(!words.isEmpty)
                #expect(peer.tls == nil)
            }
        }

        @Test("A key whose password is missing says so")
        func lockedKey() async throws {
            let key = TLSSettings.Material.file(Certificates.path("client-locked.key"))
            let fault = try await fault(try TLSPeer()) {
                $0.identity = .certificate(
                    .file(Certificates.path("client.pem")),
                    key: key,
                    password: nil
                )
            }
            #expect(fault == .tls(.invalidSettings("\(key) is encrypted: its password is missing")))
        }

        @Test(
            "No version below the minimum is offered",
            arguments: [
                (
                    TLSSettings.Version.v1_2,
                    [0x00, 0x2B, 0x00, 0x05, 0x04, 0x03, 0x04, 0x03, 0x03] as [UInt8]
                ),
                (.v1_3, [0x00, 0x2B, 0x00, 0x03, 0x02, 0x03, 0x04]),
            ]
        )
        func minimum(version: TLSSettings.Version, field: [UInt8]) throws {
            var settings = TLSSettings()
            settings.minimumVersion = version
            settings.acceptsAnyCertificate = true
            let pair = ByteStreamPair()
            let stream = try TLSStream(over: pair.first, TLSContext(settings), host: "localhost")
            stream.open()
            var hello = [UInt8](repeating: 0, count: 4_096)
            let outcome = try hello.withUnsafeMutableBytes { try pair.second.read(into: $0) }
            guard case .bytes(let count) = outcome else {
                Issue.record("nothing is offered")
                return
            }
            // The extension `supported_versions` (RFC 8446, 4.2.1).
            #expect(hello[..<count].contains(field))
            stream.close()
        }

        @Test("Versions: what both speak, the newest first; nothing in common is told")
        func versions() async throws {
            let peer = try TLSPeer { $0.minimumVersion = .v1_3 }
            let client = try await peer.connect { $0.minimumVersion = .v1_3 }
            #expect(client.stream.tls?.version == "TLSv1.3")
        }

        @Test("An application protocol is agreed on, or there is no connection")
        func applicationProtocols() async throws {
            let peer = try TLSPeer { $0.applicationProtocols = ["mqtt", "x"] }
            let client = try await peer.connect { $0.applicationProtocols = ["x", "y", "mqtt"] }
            #expect(client.stream.tls?.applicationProtocol == "mqtt")
            let other = try TLSPeer { $0.applicationProtocols = ["z"] }
            let error = try await fault(other) { $0.applicationProtocols = ["x"] }
            guard case .tls(.noCommonProtocol) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }

        @Test("A session is resumed, by the same dialer to the same host")
        func resumption() async throws {
            var client = TLSSettings()
            // Not read from a file, or each connection would begin anew.
            client.authorities = [.bytes(try Certificates.bytes("ca.pem"))]
            let dialer = try TLSEchoDialer().secured(by: client)
            for (round, host) in ["localhost", "localhost", "localhost", "127.0.0.1"].enumerated() {
                let stream = try await dialer.dial(
                    Endpoint(host: host, port: 1),
                    timeout: .seconds(10),
                    timers: ManualTimers()
                )
                #expect(stream.tls?.isResumed == (round == 1 || round == 2), "\(round)")
                let heard = Recorder()
                let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
                driver.start(heard.handler)
                driver.withCore { core, _ in core.send("x") }
                #expect(heard.events == [.line("x")])
                driver.withCore { core, _ in core.isFinished = true }
            }
        }

        // MARK: Ends

        @Test("A peer that stalls in the handshake is given up when the time is over")
        func stalls() async throws {
            let peer = TLSPeer(silent: ())
            let timers = ManualTimers()
            let attempt = Task { try await peer.connect(timers: timers) }
            try await waitUntil { timers.count != 0 }
            timers.advance(by: .seconds(10))
            await #expect(throws: LinkError.tlsTimedOut) { try await attempt.value }
            #expect(timers.count == 0)
        }

        @Test("A cancelled handshake ends at once, and the connection is closed")
        func cancelled() async throws {
            let peer = TLSPeer(silent: ())
            let timers = ManualTimers()
            let attempt = Task { try await peer.connect(timers: timers) }
            try await waitUntil { timers.count != 0 }
            attempt.cancel()
            await #expect(throws: LinkError.cancelled) { try await attempt.value }
            #expect(throws: LinkError.reset) {
                try [1].withUnsafeBytes { try peer.pair.second.write($0) }
            }
        }

        @Test(
            "What answers without TLS is told",
            arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "\u{20}\u{2}\0\0", "\u{15}", "\u{16}x"]
        )
        func notTLS(answer: String) async throws {
            let peer = TLSPeer(silent: ())
            let server = peer.pair.second
            _ = try Array(answer.utf8).withUnsafeBytes { try server.write($0) }
            server.finishWriting()
            let error = await #expect(throws: LinkError.self) { try await peer.connect() }
            #expect([.tls(.notTLS), .tls(.closed)].contains(error))
            if answer.utf8.count > 2 { #expect(error == .tls(.notTLS)) }
        }

        @Test("A connection that is closed or reset before it is secure is told as that")
        func closedEarly() async throws {
            let peer = TLSPeer(silent: ())
            peer.pair.second.close()
            await #expect(throws: LinkError.self) { try await peer.connect() }
            let other = TLSPeer(silent: ())
            let timers = ManualTimers()
            let attempt = Task { try await other.connect(timers: timers) }
            try await waitUntil { timers.count != 0 }
            other.pair.reset()
            await #expect(throws: LinkError.tls(.closed)) { try await attempt.value }
        }

        @Test("The peer's end behind TLS is an end; one without it is not")
        func truncated() async throws {
            let peer = try TLSPeer()
            let client = try await peer.connect()
            peer.send("last")
            peer.finish()
            #expect(client.heard.events == [.line("last"), .ended])
            let cut = try TLSPeer()
            let other = try await cut.connect()
            cut.send("last")
            cut.pair.second.close()
            #expect(other.heard.events == [.line("last"), .ended])
            #expect(other.heard.ends == [.truncated])
            let reset = try TLSPeer()
            let third = try await reset.connect()
            reset.pair.reset()
            #expect(third.heard.ends == [.reset])
        }

        @Test("The end that comes at once with the last bytes is told behind them")
        func endWithLastBytes() async throws {
            // TCP stays open until both sides have ended it.
            let peer = try TLSPeer(staysOpen: true)
            let client = try await peer.connect()
            peer.pair.first.setReading(false)
            peer.send("last")
            peer.finish()
            peer.pair.first.setReading(true)
            #expect(client.heard.events == [.line("last"), .ended])
            #expect(client.heard.ends == [.endOfStream])
        }

        @Test("A connection that breaks is told to a reader that has stopped, too")
        func brokenWhileHeldBack() async throws {
            let peer = try TLSPeer(tellsAlways: true)
            let client = try await peer.connect()
            client.driver.setReading(false)
            peer.pair.reset()
            #expect(client.heard.ends == [.reset])
        }

        @Test("What the peer asks for is answered, though nothing is written")
        func answersKeyUpdates() async throws {
            let server = try RawTLSServer()
            let client = try await server.connect()
            let heard = server.receivedByteCount
            // OpenSSL sends its answer with the next record: the answer to the first update when the second one
            // comes.
            for _ in 0..<2 { server.updateKeys() }
            #expect(server.receivedByteCount > heard)
            #expect(client.heard.ends.isEmpty)
        }

        @Test("A peer that asks on and on and reads no answer is given up")
        func floodOfKeyUpdates() async throws {
            let server = try RawTLSServer()
            let client = try await server.connect()
            server.isReading = false
            var count = 0
            while client.heard.ends.isEmpty, count < 100_000 {
                server.updateKeys()
                count += 1
            }
            guard case .tls(.handshakeFailed(let words)) = client.heard.ends.first else {
                Issue.record("\(client.heard.ends)")
                return
            }
            #expect(words.contains("answers"))
        }

        @Test("A record that was changed on the way ends the connection")
        func tampered() async throws {
            let peer = try TLSPeer()
            let client = try await peer.connect()
            // An application record that was never encrypted.
            let forged: [UInt8] = [23, 3, 3, 0, 20] + [UInt8](repeating: 9, count: 20)
            _ = try forged.withUnsafeBytes { try peer.pair.second.write($0) }
            guard case .tls(.handshakeFailed) = client.heard.ends.first else {
                Issue.record("\(client.heard.ends)")
                return
            }
            #expect(client.heard.events == [.ended])
        }
    }
#endif
