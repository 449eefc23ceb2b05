import Testing
import WaybillLink
import WireTestSupport

@Suite("When acknowledgements are asked for") struct QuickAcknowledgementsTests {
    /// A step on a socket. `asks` is true when the read must turn quick acknowledgements on.
    private enum Step {
        case write
        case read(asks: Bool)
    }

    private func expect(_ steps: [Step], _ location: SourceLocation = #_sourceLocation) {
        var acknowledgements = QuickAcknowledgements()
        for (number, step) in steps.enumerated() {
            switch step {
            case .write: acknowledgements.noteWrite()
            case .read(let asks):
                #expect(
                    acknowledgements.noteRead() == asks,
                    "step \(number)",
                    sourceLocation: location
                )
            }
        }
    }

    @Test("A stream of messages to a reader that writes nothing never asks")
    func stream() {
        expect([.write, .read(asks: true)] + Array(repeating: .read(asks: false), count: 100))
    }

    @Test(
        "A peer that answers in pieces is asked for each write; one that answers at once, no longer"
    )
    func conversation() {
        let pieces: [Step] = [.write, .read(asks: true), .read(asks: false)]
        expect(Array(repeating: pieces, count: 100).flatMap { $0 })
        let first: [Step] = [.write, .write, .read(asks: true)]
        let later: [Step] = [.write, .read(asks: false)]
        let stopped =
            Array(repeating: first, count: QuickAcknowledgements.turnLimit)
            + Array(repeating: later, count: 100)
        expect(stopped.flatMap { $0 })
        // The next answer in pieces turns them on again.
        expect(stopped.flatMap { $0 } + [.read(asks: true), .write, .read(asks: true)])
    }
}

#if os(Linux)
    import Glibc

    /// TCP acknowledgements as the peer's kernel counts them.
    @Suite("Quick acknowledgements", .timeLimit(.minutes(30))) struct QuickAcknowledgementTests {
        /// A peer that gathers small writes (Nagle's algorithm, the default of a socket), as Mosquitto does.
        private struct GatheringPeer: ~Copyable {
            let listener: Int32
            let port: UInt16
            var connection: Int32 = -1

            init() throws {
                let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                self.listener = listener
                try #require(listener >= 0)
                try #require(LoopbackAddress.with(0) { bind(listener, $0, $1) } == 0)
                try #require(listen(listener, 1) == 0)
                port = LoopbackAddress.port(of: listener)
            }

            deinit {
                if connection >= 0 { close(connection) }
                close(listener)
            }

            mutating func accept() throws {
                connection = Glibc.accept(listener, nil, nil)
                try #require(connection >= 0)
            }

            func send(_ line: String) {
                let bytes = Array("\(line)\n".utf8)
                #expect(Glibc.send(connection, bytes, bytes.count, 0) == bytes.count)
            }

            /// Waits for one line, which arrives in one piece on loopback.
            func receiveLine() {
                var bytes = [UInt8](repeating: 0, count: 64)
                let count = recv(connection, &bytes, bytes.count, 0)
                #expect(count > 0 && bytes[max(count - 1, 0)] == UInt8(ascii: "\n"))
            }

            /// The number of segments that wait for an acknowledgement.
            private var unacknowledged: UInt32 {
                var info = tcp_info()
                var size = socklen_t(MemoryLayout<tcp_info>.size)
                getsockopt(connection, Int32(IPPROTO_TCP), TCP_INFO, &info, &size)
                return info.tcpi_unacked
            }

            /// True when everything is acknowledged within a few checks, far below the 40 ms of a delayed
            /// acknowledgement.
            var isAcknowledged: Bool {
                for _ in 0..<500 {
                    if unacknowledged == 0 { return true }
                    sched_yield()
                }
                return false
            }
        }

        @Test("What is read in a conversation is acknowledged at once: a peer that gathers goes on")
        func conversation() async throws {
            var peer = try GatheringPeer()
            let timers = ManualTimers()
            let stream = try await TCPDialer().dial(
                Endpoint(host: "127.0.0.1", port: peer.port),
                timeout: .seconds(10),
                timers: timers
            )
            let driver = Driver(core: LineCore(), stream: stream, timers: timers)
            let recorder = Recorder()
            driver.start(recorder.handler)
            try peer.accept()
            var delayed = 0
            for turn in 0..<40 {
                driver.withCore(.immediate) { core, _ in core.send("ask") }
                peer.receiveLine()
                for (number, line) in ["one", "two"].enumerated() {
                    peer.send(line)
                    await recorder.wait(events: turn * 2 + number + 1)
                    if !peer.isAcknowledged { delayed += 1 }
                }
            }
            #expect(delayed == 0)
            driver.close()
            await recorder.wait(ends: 1)
        }
    }
#endif
