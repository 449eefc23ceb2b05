package import WaybillLink
import WireCore

/// The other end of a connection, byte by byte: expects these, answers those, breaks off there.
///
/// Steps run one after another without threads or waiting; what differs is told in ``failures``, with the
/// step's number and the bytes in hexadecimal.
public final class ScriptedByteStream: Sendable {
    /// One step.
    public enum Step: Sendable {
        /// These bytes must come next.
        case expect([UInt8])
        /// So many bytes must come next, whatever they are.
        case skip(Int)
        /// These bytes are sent.
        case reply([UInt8])
        /// This end finishes writing.
        case finish
        /// The connection breaks.
        case reset

        /// This text must come next, as UTF-8; NUL ends a STOMP frame.
        public static func expect(_ text: String) -> Step { .expect(Array(text.utf8)) }

        /// This text is sent, as UTF-8.
        public static func reply(_ text: String) -> Step { .reply(Array(text.utf8)) }
    }

    private struct State: Sendable {
        var steps: ArraySlice<Step>
        var number = 1
        var received: [UInt8] = []
        var failures: [String] = []
        var isOver = false

        /// Takes the next step that can be made with what has been received.
        mutating func nextStep() -> Step? {
            guard !isOver, let step = steps.first else { return nil }
            switch step {
            case .expect(let bytes):
                let common = min(bytes.count, received.count)
                guard received.prefix(common) == bytes.prefix(common) else {
                    failures.append(
                        "step \(number): expected \(hex(bytes)), received \(hex(received))"
                    )
                    isOver = true
                    return nil
                }
                guard received.count >= bytes.count else { return nil }
                received.removeFirst(bytes.count)
            case .skip(let count):
                guard received.count >= count else { return nil }
                received.removeFirst(count)
            case .reply, .finish, .reset: break
            }
            steps.removeFirst()
            number += 1
            return step
        }

        private func hex(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
                .joined(separator: " ")
        }
    }

    private let state: Locked<State>
    private let pair = ByteStreamPair()

    /// Writes the script.
    public convenience init(_ steps: Step...) {
        self.init(steps: steps)
    }

    /// Writes the script, step by step in a list.
    public init(steps: [Step]) {
        state = Locked(State(steps: steps[...]))
    }

    /// The differences between the script and the bytes that came.
    public var failures: [String] { state.withLock { $0.failures } }

    /// True when every step has been made, and no further byte has come.
    public var isComplete: Bool {
        state.withLock { $0.steps.isEmpty && $0.failures.isEmpty && $0.received.isEmpty }
    }

    /// True when all steps before this one, counted from 1, have been made.
    public func hasReached(_ step: Int) -> Bool {
        state.withLock { $0.number >= step && $0.failures.isEmpty }
    }

    /// The end that a link is given.
    package func open() -> any ByteStream {
        pair.second.start(Peer(script: self, stream: pair.second))
        return pair.first
    }

    private final class Peer: ByteStreamReceiver {
        private let script: ScriptedByteStream
        private let stream: any ByteStream

        init(script: ScriptedByteStream, stream: any ByteStream) {
            self.script = script
            self.stream = stream
        }

        func streamIsReadable() {
            var buffer = ReceiveBuffer()
            while true {
                let outcome = Locked(ReadOutcome.nothing)
                _ = buffer.fill { space in
                    guard case .bytes(let count) = (try? stream.read(into: space)) ?? .nothing
                    else {
                        return nil
                    }
                    outcome.withLock { $0 = .bytes(count) }
                    return count
                }
                guard case .bytes = outcome.withLock({ $0 }) else { break }
            }
            let bytes = buffer.withUnsafeBytes { Array($0) }
            script.state.withLock { $0.received += bytes }
            script.play(on: stream)
        }

        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }

    private func play(on stream: any ByteStream) {
        while let step = state.withLock({ $0.nextStep() }) {
            switch step {
            case .expect, .skip: break
            case .reply(let bytes):
                _ = bytes.withUnsafeBytes { try? stream.write($0) }
            case .finish: stream.finishWriting()
            case .reset: pair.reset()
            }
        }
    }
}

extension ScriptedByteStream: CustomReflectable {
    /// Empty: the bytes of a script may be secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
