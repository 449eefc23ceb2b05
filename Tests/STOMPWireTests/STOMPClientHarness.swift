import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// A pending call, identified by its number.
final class Call: STOMPCall {
    let number: Int

    init(_ number: Int) {
        self.number = number
    }
}

/// A client core under test. A test gives it text, and reads the text that it sends and a log of its events.
struct ClientHarness {
    var client: STOMPClientConnection
    var now = WireInstant.zero
    private var buffer = ReceiveBuffer(capacity: 64)

    /// The events since the last call of `told()`, in words.
    private var log: [String] = []
    /// The tokens that acknowledge the messages so far, in order.
    var tokens: [STOMPAckToken] = []
    /// The last CONNECTED frame.
    var connected: STOMPConnected?
    /// The end of the connection; nil while it is open.
    var closure: STOMPClosure?

    /// Makes a client that is connected with the version. With nil it has not begun to connect.
    init(
        _ version: STOMPVersion?,
        request: STOMPConnect = STOMPConnect(host: "h"),
        headers: String = "",
        _ change: (inout STOMPClientConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = STOMPClientConfiguration()
        change(&configuration)
        client = STOMPClientConnection(configuration: configuration)
        guard let version else { return }
        try client.connect(request, at: now)
        receive("CONNECTED\nversion:\(version.text)\n\(headers)\n\0")
        _ = sent
        log = []
    }

    /// Takes the text that the core wants sent.
    var sent: String {
        mutating get { String(decoding: client.outbound.takeBytes(), as: UTF8.self) }
    }

    mutating func receive(_ text: String) {
        receive(Array(text.utf8))
    }

    mutating func receive(_ bytes: [UInt8]) {
        buffer.append(bytes)
        client.receiveAll(&buffer, at: now)
        note()
    }

    mutating func advance(_ duration: Duration) {
        now = now.advanced(by: duration)
        client.advance(to: now)
        note()
    }

    mutating func endOfStream() {
        client.receiveEndOfStream(at: now)
        note()
    }

    mutating func disconnect() {
        client.disconnect(at: now)
        note()
    }

    mutating func send(_ number: Int? = nil, timeout: Duration? = nil) throws {
        try client.send(
            ["destination": "/q"],
            body: Array("x".utf8),
            call: number.map { Call($0) },
            timeout: timeout,
            at: now
        )
    }

    mutating func subscribe(_ id: String, _ mode: STOMPAckMode = .auto) throws {
        try client.send(.subscribe(id: id, destination: "/q", ackMode: mode), at: now)
        _ = sent
    }

    private mutating func note() {
        for event in client.takeEvents() {
            switch event {
            case .connected(let connected):
                self.connected = connected
                log.append("connected \(connected.version.text)")
            case .message(let id, let frame, let token):
                log.append("message \(id) \(String(decoding: frame.body.bytes, as: UTF8.self))")
                if let token { tokens.append(token) }
            case .skipped(_, let message, _):
                log.append("skipped \(message.byteCount)")
            case .unheard(let frame): log.append("unheard, \(frame.body.count)")
            case .receipt(let call, let headers):
                log.append("receipt \(number(call)) \(headers.receiptID ?? "")")
            case .failed(let call, let error):
                log.append("failed \(number(call)) \(error.message ?? "")")
            case .timedOut(let call, _): log.append("timed out \(number(call))")
            case .receiptsMissing: log.append("receipts are missing")
            case .abandoned(let call): log.append("abandoned \(number(call))")
            case .notSent(let call): log.append("not sent \(number(call))")
            case .trace(let trace):
                log.append("\(trace.isOutbound ? ">" : "<") \(trace.text), \(trace.byteCount)")
            case .closed(let closure):
                self.closure = closure
                log.append("closed")
            }
        }
    }

    private func number(_ call: any STOMPCall) -> Int {
        (call as? Call)?.number ?? -1
    }

    /// Takes the log.
    mutating func told() -> [String] {
        note()
        defer { log = [] }
        return log
    }
}
