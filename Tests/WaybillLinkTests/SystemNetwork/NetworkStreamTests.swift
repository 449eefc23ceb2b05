import Testing
import WaybillLink

/// The stream over Network.framework, with a scripted connection: every report in every state, and its end.
@Suite("A stream over Network.framework") struct NetworkStreamTests {
    /// A stream with its connection and their transcript.
    private struct Fixture {
        let connection = ScriptedConnection()
        let stream: NetworkStream<ScriptedConnection>

        init() {
            stream = NetworkStream(connection, hasBetterPath: false)
        }

        func start() {
            stream.start(NotingReceiver(connection.transcript))
            connection.run()
        }

        func write(_ count: Int) throws(LinkError) -> Int {
            let bytes = [UInt8](repeating: 1, count: count)
            let result = bytes.withUnsafeBytes { bytes in
                Result { () throws(LinkError) in try stream.write(bytes) }
            }
            return try result.get()
        }

        func read() throws(LinkError) -> ReadOutcome {
            var space = [UInt8](repeating: 0, count: 10)
            let result = space.withUnsafeMutableBytes { space in
                Result { () throws(LinkError) in try stream.read(into: space) }
            }
            return try result.get()
        }

        func take() -> [String] { connection.transcript.take() }
    }

    enum State: CaseIterable, Sendable {
        case made
        case open
        case notViable
        case failed
        case closing
        case over
    }

    private static func fixture(_ state: State) throws -> Fixture {
        let fixture = Fixture()
        if state != .made { fixture.start() }
        switch state {
        case .made, .open: break
        case .notViable: fixture.connection.report(.viable(false))
        case .failed: fixture.connection.report(.failed(.reset))
        case .closing: fixture.stream.close()
        case .over:
            #expect(try fixture.write(3) == 3)
            fixture.stream.close()
            fixture.connection.run()
        }
        _ = fixture.take()
        return fixture
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let report: NetworkReport
        /// What follows in the states made, open, not viable.
        let effects: [[String]]

        var testDescription: String { "\(report)" }
    }

    private static let grace = ["after 3.0 seconds"]
    private static let told = ["readable"]

    static let rows: [Row] = [
        Row(report: .preparing, effects: [[], [], []]),
        Row(report: .waiting(.pathLost, isFinal: false), effects: [grace, grace, []]),
        Row(report: .waiting(.reset, isFinal: true), effects: [grace, grace, []]),
        Row(report: .ready, effects: [[], [], []]),
        Row(report: .failed(.reset), effects: [[], told, told]),
        Row(report: .cancelled, effects: [[], told, told]),
        Row(report: .viable(true), effects: [[], [], []]),
        Row(report: .viable(false), effects: [grace, grace, []]),
        Row(report: .betterPath(true), effects: [[], [], told]),
        Row(report: .betterPath(false), effects: [[], [], []]),
    ]

    @Test("Every report in every state", arguments: rows)
    func table(row: Row) throws {
        for (index, state) in State.allCases.enumerated() {
            let fixture = try Self.fixture(state == .closing ? .open : state)
            fixture.connection.queue(row.report)
            // The report comes before the connection is cancelled.
            if state == .closing { fixture.stream.close() }
            fixture.connection.run()
            let effects = index < row.effects.count ? row.effects[index] : []
            #expect(
                fixture.take() == (state == .closing ? ["cancel", "end"] : effects),
                "\(state)"
            )
        }
    }

    /// A call, with its result and what follows in the states made, open, failed, closing, over.
    private struct Call: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let effects: [String]
        let perform: @Sendable (Fixture) throws -> String

        init(
            _ name: String,
            _ effects: [String],
            _ perform: @escaping @Sendable (Fixture) throws -> String
        ) {
            testDescription = name
            self.effects = effects
            self.perform = perform
        }
    }

    private static let broken = [
        "connection reset by the peer []", "connection closed [cancel, end]",
        "connection closed []",
    ]

    private static let calls: [Call] = [
        Call(
            "write",
            ["3 [send 3]", "3 [send 3]"] + broken
        ) { "\(try $0.write(3))" },
        Call(
            "read",
            ["nothing []", "nothing []"] + broken
        ) { "\(try $0.read())" },
        Call("scheduleFlush", [" []", " [flush]", " [flush]", " [cancel, end]", " []"]) {
            _ = $0.stream.scheduleFlush()
            return ""
        },
        Call("readAgain", [" []", " [readable]", " [readable]", " [cancel, end]", " []"]) {
            $0.stream.readAgain()
            return ""
        },
        Call("finishWriting", [" [finish]", " [finish]", " []", " [cancel, end]", " []"]) {
            $0.stream.finishWriting()
            return ""
        },
        Call(
            "close",
            [" [cancel]", " [cancel, end]", " [cancel, end]", " [cancel, end]", " []"]
        ) {
            $0.stream.close()
            return ""
        },
        Call(
            "abandon",
            [
                " [force cancel]", " [force cancel, end]", " [force cancel, end]",
                " [cancel, end]", " []",
            ]
        ) {
            $0.stream.abandon()
            return ""
        },
    ]

    @Test("Every call in every state", arguments: calls)
    private func call(_ call: Call) throws {
        for (index, state) in [State.made, .open, .failed, .closing, .over].enumerated() {
            let fixture = try Self.fixture(state)
            let result: String
            do { result = try call.perform(fixture) } catch { result = "\(error)" }
            fixture.connection.run()
            let effects = fixture.take().joined(separator: ", ")
            #expect("\(result) [\(effects)]" == call.effects[index], "\(state)")
        }
    }

    @Test("A failure before the start is told at the start")
    func failedBeforeStart() {
        let fixture = Fixture()
        fixture.connection.report(.failed(.reset))
        fixture.start()
        #expect(fixture.take() == ["readable"])
        #expect(throws: LinkError.reset) { try fixture.read() }
    }

    @Test("A connection that waits again is lost after the grace period, unless it is ready before")
    func waitsAgain() throws {
        for isBack in [true, false] {
            let fixture = try Self.fixture(.open)
            fixture.connection.report(.waiting(.unreachable(errorNumber: 50), isFinal: false))
            if isBack { fixture.connection.report(.ready) }
            #expect(fixture.take() == Self.grace)
            fixture.connection.elapse()
            #expect(fixture.take() == (isBack ? [] : Self.told))
            if !isBack { #expect(throws: LinkError.pathLost) { try fixture.read() } }
        }
    }

    @Test("Bytes, the end and a failure reach the reader in this order")
    func reading() throws {
        let fixture = Fixture()
        fixture.start()
        fixture.connection.deliver([1, 2])
        #expect(fixture.take() == ["receive", "readable"])
        #expect(try fixture.read() == .bytes(2))
        fixture.stream.readAgain()
        fixture.connection.run()
        _ = fixture.take()
        fixture.connection.report(.viable(true))
        fixture.stream.setReading(false)
        fixture.stream.setReading(true)
        fixture.connection.run()
        #expect(fixture.take() == ["receive"])
        fixture.connection.deliver(nil, isComplete: true)
        #expect(fixture.take() == ["readable"])
        #expect(try fixture.read() == .endOfStream)
    }

    @Test("The end comes after the last chunk, or by force")
    func lingering() throws {
        for isTaken in [true, false] {
            let fixture = try Self.fixture(.open)
            #expect(try fixture.write(3) == 3)
            fixture.stream.finishWriting()
            fixture.stream.close()
            fixture.stream.close()
            fixture.connection.run()
            #expect(fixture.take() == ["send 3", "finish", "after 5.0 seconds", "end"])
            if isTaken {
                fixture.connection.completeSend()
                #expect(fixture.take() == [])
                fixture.connection.completeSend()
                #expect(fixture.take() == ["cancel"])
            }
            fixture.connection.elapse()
            #expect(fixture.take() == ["force cancel"])
            fixture.connection.deliver([1])
            #expect(fixture.take() == [])
        }
    }

    @Test("Abandoned, a connection ends at once, with what was not sent")
    func abandoned() throws {
        let fixture = try Self.fixture(.open)
        #expect(try fixture.write(3) == 3)
        fixture.stream.abandon()
        fixture.connection.run()
        #expect(fixture.take() == ["send 3", "force cancel", "end"])
        fixture.connection.report(.cancelled)
        #expect(fixture.take() == [])
    }

    @Test("A chunk that fails breaks the stream; a writer that waits is told first")
    func failedSend() throws {
        let fixture = try Self.fixture(.open)
        #expect(try fixture.write(1 << 18) == 1 << 17)
        fixture.connection.completeSend(.reset)
        #expect(fixture.take() == ["send 131072", "writable", "readable"])
        #expect(throws: LinkError.reset) { try fixture.write(1) }
    }

    @Test("Closed before its start, a stream ends when it is started")
    func closedFirst() {
        let fixture = Fixture()
        fixture.stream.close()
        fixture.connection.run()
        #expect(fixture.take() == ["cancel"])
        fixture.start()
        #expect(fixture.take() == ["end"])
    }

    @Test("A stream is kept from its start to its end, and not before or after")
    func released() {
        weak var made: NetworkStream<ScriptedConnection>?
        weak var started: NetworkStream<ScriptedConnection>?
        let connection = ScriptedConnection()
        do {
            let stream = NetworkStream(connection, hasBetterPath: false)
            made = stream
        }
        #expect(made == nil)
        #expect(connection.transcript.take() == ["cancel"])
        do {
            let stream = NetworkStream(connection, hasBetterPath: false)
            stream.start(NotingReceiver(connection.transcript))
            connection.run()
            started = stream
        }
        #expect(started != nil)
        started?.close()
        connection.run()
        connection.deliver(nil, failure: .closed)
        #expect(started == nil)
    }
}
