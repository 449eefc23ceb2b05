import WaybillLink
import WireCore

/// A connection of Network.framework that does only what a test says.
///
/// Its queue is a list of jobs, which ``run()`` carries out. Everything that the link does with the connection is a line
/// of the transcript.
final class ScriptedConnection: SystemConnection {
    private struct State: Sendable {
        var jobs: [@Sendable () -> Void] = []
        var delayed: [@Sendable () -> Void] = []
        var receiver: (@Sendable (NetworkReport) -> Void)?
        var receive: (@Sendable ([UInt8]?, Bool, LinkError?) -> Void)?
        var sends: [@Sendable (LinkError?) -> Void] = []
    }

    private let state = Locked(State())
    let transcript: Transcript
    let tls: TLSAgreement?

    init(_ transcript: Transcript = Transcript(), tls: TLSAgreement? = nil) {
        self.transcript = transcript
        self.tls = tls
    }

    // MARK: What the link calls

    func start() { transcript.note("start") }

    func report(to receiver: (@Sendable (NetworkReport) -> Void)?) {
        state.withLock { $0.receiver = receiver }
    }

    func perform(_ job: @escaping @Sendable () -> Void) {
        state.withLock { $0.jobs.append(job) }
    }

    func perform(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
        transcript.note("after \(delay)")
        state.withLock { $0.delayed.append(job) }
    }

    func receive(
        atMost limit: Int,
        _ completion: @escaping @Sendable ([UInt8]?, _ isComplete: Bool, LinkError?) -> Void
    ) {
        transcript.note("receive")
        state.withLock { $0.receive = completion }
    }

    func send(
        _ bytes: UnsafeRawBufferPointer,
        _ completion: @escaping @Sendable (LinkError?) -> Void
    ) {
        transcript.note("send \(bytes.count)")
        state.withLock { $0.sends.append(completion) }
    }

    func finish(_ completion: @escaping @Sendable (LinkError?) -> Void) {
        transcript.note("finish")
        state.withLock { $0.sends.append(completion) }
    }

    func cancel() { transcript.note("cancel") }

    func forceCancel() { transcript.note("force cancel") }

    // MARK: What the framework does

    /// Carries out all jobs of the queue.
    func run() {
        while let job = state.withLock({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) { job() }
    }

    /// Lets all times pass.
    func elapse() {
        let jobs = state.withLock { state in
            defer { state.delayed = [] }
            return state.delayed
        }
        for job in jobs { perform(job) }
        run()
    }

    func report(_ report: NetworkReport) {
        queue(report)
        run()
    }

    /// Lets a report wait in the queue.
    func queue(_ report: NetworkReport) {
        let receiver = state.withLock { $0.receiver }
        if let receiver { perform { receiver(report) } }
    }

    func deliver(_ bytes: [UInt8]?, isComplete: Bool = false, failure: LinkError? = nil) {
        if let receive = state.withLock({ $0.receive.take() }) {
            perform { receive(bytes, isComplete, failure) }
        }
        run()
    }

    /// Completes the oldest send.
    func completeSend(_ failure: LinkError? = nil) {
        let send = state.withLock { $0.sends.isEmpty ? nil : $0.sends.removeFirst() }
        if let send { perform { send(failure) } }
        run()
    }
}

/// What was called, in order.
final class Transcript: Sendable {
    private let lines = Locked<[String]>([])

    func note(_ line: String) { lines.withLock { $0.append(line) } }

    /// Everything since the last call.
    func take() -> [String] {
        lines.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }
}

/// A receiver that notes its calls, and reads nothing.
final class NotingReceiver: ByteStreamReceiver {
    private let transcript: Transcript

    init(_ transcript: Transcript) { self.transcript = transcript }

    func streamIsReadable() { transcript.note("readable") }
    func streamIsWritable() { transcript.note("writable") }
    func streamShouldFlush() { transcript.note("flush") }
    func streamDidEnd(_ error: LinkError?) { transcript.note("end") }
}

/// A listener of Network.framework that does only what a test says.
final class ScriptedListener: SystemListener {
    private struct State: Sendable {
        var report: (@Sendable (NetworkListenerState.Event) -> Void)?
        var accept: (@Sendable (ScriptedConnection) -> Void)?
    }

    private let state = Locked(State())
    private let atStart: [NetworkListenerState.Event]
    let transcript = Transcript()

    /// - Parameter atStart: What is reported before `start` returns.
    init(atStart: NetworkListenerState.Event...) { self.atStart = atStart }

    func start(
        _ report: @escaping @Sendable (NetworkListenerState.Event) -> Void,
        accept: @escaping @Sendable (ScriptedConnection) -> Void
    ) {
        state.withLock { state in
            state.report = report
            state.accept = accept
        }
        for event in atStart { report(event) }
    }

    func cancel() { transcript.note("cancel") }

    func report(_ event: NetworkListenerState.Event) { state.withLock { $0.report }?(event) }

    func accept(_ connection: ScriptedConnection) { state.withLock { $0.accept }?(connection) }
}

/// The streams that were handed over.
final class AcceptedStreams: Sendable {
    private let streams = Locked<[any ByteStream]>([])

    var all: [any ByteStream] { streams.withLock { $0 } }

    func add(_ stream: any ByteStream) { streams.withLock { $0.append(stream) } }
}
