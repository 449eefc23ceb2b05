import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// A server core under test. A test gives it text, and reads the text that it sends and a log of its events.
struct ServerHarness {
    var server: STOMPServerConnection
    var now = WireInstant.zero
    private var buffer = ReceiveBuffer(capacity: 64)
    private var log: [String] = []
    /// The last CONNECT frame.
    var request: STOMPConnectRequest?
    /// The end of the connection; nil while it is open.
    var closure: STOMPServerClosure?

    /// Makes a server with a client of that version. With nil no client has sent anything.
    init(
        _ version: STOMPVersion?,
        heartBeat: String? = nil,
        _ change: (inout STOMPServerConfiguration) -> Void = { _ in }
    ) {
        var configuration = STOMPServerConfiguration()
        change(&configuration)
        server = STOMPServerConnection(configuration: configuration, at: .zero)
        guard let version else { return }
        let beat = heartBeat.map { "heart-beat:\($0)\n" } ?? ""
        receive("CONNECT\naccept-version:\(version.text)\nhost:h\n\(beat)\n\0")
        let seconds = STOMPHeartBeat(outgoing: .seconds(1), incoming: .seconds(1))
        server.accept(heartBeat: seconds, at: now)
        _ = sent
        log = []
    }

    /// Takes the text that the core wants sent.
    var sent: String {
        mutating get { String(decoding: server.outbound.takeBytes(), as: UTF8.self) }
    }

    mutating func receive(_ text: String) {
        buffer.append(Array(text.utf8))
        server.receive(&buffer, at: now)
        note()
    }

    mutating func advance(_ duration: Duration) {
        now = now.advanced(by: duration)
        server.advance(to: now)
        note()
    }

    private mutating func note() {
        for event in server.takeEvents() {
            switch event {
            case .connect(let request):
                self.request = request
                log.append("connect \(request.version.text)")
            case .send(let destination, let frame, let transaction, let receipt):
                let body = String(decoding: frame.body.bytes, as: UTF8.self)
                log.append("send \(destination) \(body) \(transaction ?? "-") \(receipt ?? "-")")
            case .subscribe(let id, let destination, let mode, _, let receipt):
                log.append("subscribe \(id) \(destination) \(mode) \(receipt ?? "-")")
            case .unsubscribe(let id, let receipt):
                log.append("unsubscribe \(id) \(receipt ?? "-")")
            case .acknowledge(let ack, let receipt):
                log.append("ack \(text(ack)) \(receipt ?? "-")")
            case .refuse(let ack, let receipt):
                log.append("nack \(text(ack)) \(receipt ?? "-")")
            case .begin(let transaction, let receipt):
                log.append("begin \(transaction) \(receipt ?? "-")")
            case .commit(let transaction, let receipt):
                log.append("commit \(transaction) \(receipt ?? "-")")
            case .abort(let transaction, let receipt):
                log.append("abort \(transaction) \(receipt ?? "-")")
            case .disconnect(let receipt): log.append("disconnect \(receipt ?? "-")")
            case .trace(let trace):
                log.append("\(trace.isOutbound ? ">" : "<") \(trace.text), \(trace.byteCount)")
            case .closed(let closure):
                self.closure = closure
                log.append("closed")
            }
        }
    }

    private func text(_ ack: STOMPAcknowledgement) -> String {
        "\(ack.identifier) \(ack.subscriptionID ?? "-") \(ack.transaction ?? "-")"
    }

    /// Takes the log.
    mutating func told() -> [String] {
        note()
        defer { log = [] }
        return log
    }
}
