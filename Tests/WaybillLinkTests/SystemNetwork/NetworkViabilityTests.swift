import Testing
import WaybillLink

/// The meaning of a change of the path. The rules do not need an Apple platform.
@Suite("A change of the network under a connection") struct NetworkViabilityTests {
    /// A change that the framework reports.
    enum Change: Sendable {
        case viable(Bool)
        case better(Bool)
        case graceEnds(Int)

        func apply(_ viability: inout NetworkViability) -> NetworkViability.Step {
            switch self {
            case .viable(let isViable): viability.note(isViable: isViable)
            case .better(let hasBetterPath): viability.note(hasBetterPath: hasBetterPath)
            case .graceEnds(let number): viability.graceDidEnd(number)
            }
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let changes: [(Change, NetworkViability.Step)]
    }

    static let rows = [
        Row(
            testDescription: "the connection begins viable, and is told so",
            changes: [(.viable(true), .nothing), (.graceEnds(0), .nothing)]
        ),
        Row(
            testDescription: "a path that does not come back is a loss after the grace period",
            changes: [
                (.viable(false), .wait(1)), (.viable(false), .nothing), (.graceEnds(1), .fail),
                (.graceEnds(1), .nothing),
            ]
        ),
        Row(
            testDescription:
                "a path that comes back in time is no loss, and the next has its own period",
            changes: [
                (.viable(false), .wait(1)), (.viable(true), .nothing), (.viable(false), .wait(2)),
                (.graceEnds(1), .nothing), (.graceEnds(2), .fail),
            ]
        ),
        Row(
            testDescription:
                "from Wi-Fi to a cellular network: lost at once, there is a better path",
            changes: [
                (.viable(false), .wait(1)), (.better(true), .fail), (.graceEnds(1), .nothing),
            ]
        ),
        Row(
            testDescription: "the same, told the other way round",
            changes: [(.better(true), .nothing), (.viable(false), .fail)]
        ),
        Row(
            testDescription: "a better path for a connection that works changes nothing",
            changes: [
                (.better(true), .nothing), (.better(false), .nothing), (.viable(false), .wait(1)),
            ]
        ),
        Row(
            testDescription: "what is lost stays lost",
            changes: [
                (.better(true), .nothing), (.viable(false), .fail), (.viable(true), .nothing),
                (.viable(false), .nothing), (.better(true), .nothing),
            ]
        ),
    ]

    @Test("Each change has its consequence", arguments: rows)
    func table(row: Row) {
        var viability = NetworkViability()
        for (change, step) in row.changes {
            #expect(change.apply(&viability) == step, "\(change)")
        }
    }

    /// A receiver without behaviour.
    private final class Listener: ByteStreamReceiver {
        func streamIsReadable() {}
        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }

    @Test("A lost path ends the stream with an error, behind the bytes that came before")
    func ends() throws {
        var state = NetworkStreamState<[UInt8]>()
        state.start(Listener())
        _ = state.nextStep()
        state.noteReceived([1], isComplete: false, failure: nil)
        #expect(state.note(.viable(false)) == .wait(1))
        #expect(state.graceDidEnd(1) == .fail)
        var space: [UInt8] = [0, 0]
        let first = try space.withUnsafeMutableBytes { try state.read(into: $0) }
        #expect(first == .bytes(1))
        guard case .tell = state.nextStep() else {
            Issue.record("the receiver is not told")
            return
        }
        #expect(throws: LinkError.pathLost) {
            try space.withUnsafeMutableBytes { try state.read(into: $0) }
        }
        #expect(throws: LinkError.pathLost) { try state.takeForSending(1, atMost: 10) }
    }

    @Test("A stream that was closed or has failed hears nothing of its path")
    func over() {
        var closed = NetworkStreamState<[UInt8]>()
        #expect(closed.close() == true)
        #expect(closed.note(.viable(false)) == .nothing)
        var failed = NetworkStreamState<[UInt8]>()
        failed.fail(.reset)
        #expect(failed.note(.viable(false)) == .nothing)
        #expect(throws: LinkError.reset) { try failed.takeForSending(1, atMost: 10) }
    }
}
