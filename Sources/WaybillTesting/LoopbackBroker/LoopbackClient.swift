import EventStreamWire
import HTTPWire
import MQTTWire
import STOMPWire
import WaybillLink
import WireCore

/// A client that speaks MQTT.
typealias MQTTLoopbackClient = LoopbackClient<MQTTServerConnection>
/// A client that speaks STOMP.
typealias STOMPLoopbackClient = LoopbackClient<STOMPServerConnection>
/// A client that speaks HTTP: it reads an event stream, or makes requests.
typealias HTTPLoopbackClient = LoopbackClient<HTTPServerConnection>

/// What may wait for one client.
enum LoopbackClientLimit {
    static let byteCount = 16 << 20
}

/// One connection to the broker, of any protocol.
final class LoopbackClient<Core: ProtocolCore>: Sendable {
    let identifier: UInt64
    let service: LoopbackBroker.Service
    private let driver: Driver<Core>

    init(
        identifier: UInt64,
        service: LoopbackBroker.Service,
        core: Core,
        stream: any ByteStream,
        timers: any TimerSource
    ) {
        self.identifier = identifier
        self.service = service
        driver = Driver(core: core, stream: stream, timers: timers)
    }

    /// Sets it going; the client lives until its end.
    func start(
        _ handle: @escaping @Sendable (Core.Event, LoopbackClient) -> Void,
        onEnd: @escaping @Sendable () -> Void
    ) {
        driver.start(
            .init(
                receive: { events in
                    for event in events { handle(event, self) }
                },
                end: { _ in onEnd() }
            )
        )
    }

    /// Runs `body` with the core and the time, and sends what it has written.
    func withCore<Result: Sendable, Failure: Error>(
        _ urgency: Driver<Core>.Urgency = .immediate,
        _ body: (inout Core, WireInstant) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try driver.withCore(urgency, body)
    }

    /// The present by the connection's clock.
    var now: WireInstant { driver.timers.now }

    /// The number of bytes that wait to leave.
    var unsentByteCount: Int { driver.unsentByteCount }

    /// Ends a client that reads so slowly that more than 16 MiB wait for it.
    ///
    /// - Returns: Whether it has ended.
    func endIfSlow() -> Bool {
        guard unsentByteCount > LoopbackClientLimit.byteCount else { return false }
        abandon()
        return true
    }

    func cut() {
        driver.close()
    }

    /// Breaks the connection without a word.
    func abandon() {
        driver.abandon()
    }
}

extension MQTTLoopbackClient {
    /// Sends a message.
    /// - Returns: False when the connection is over and the message was not taken.
    func send(_ message: MQTTOutgoingMessage) -> Bool {
        if endIfSlow() { return false }
        let (isTaken, isFull) = withCore(.paced) { core, _ in
            guard !core.isFinished else { return (false, false) }
            core.send(message)
            // Counted now and then, since that takes long.
            let isCounted =
                core.outgoingMessageCount % 256 == 255 || message.payload.wireByteCount > 1 << 16
            return (true, isCounted && core.queuedByteCount > LoopbackClientLimit.byteCount)
        }
        if isFull { abandon() }
        return isTaken
    }

    /// DISCONNECT, which 3.1.1 does not have, and the end.
    func disconnect(_ reasonCode: MQTTReasonCode = .administrativeAction) {
        withCore { core, _ in core.disconnect(MQTTDisconnect(reasonCode: reasonCode)) }
    }
}

extension STOMPLoopbackClient {
    func send(_ delivery: LoopbackDelivery) {
        if endIfSlow() { return }
        withCore(.paced) { core, now in
            // A client that is leaving gets nothing more; the message waits for another one.
            try? core.message(delivery.headers, body: delivery.body, at: now)
        }
    }

    /// Sends the receipt of a request, if it has asked for one.
    func answer(_ receipt: String?) {
        guard let receipt else { return }
        withCore { core, now in core.receipt(receipt, at: now) }
    }

    /// ERROR and the end.
    func refuse(_ message: String, _ receipt: String?) {
        withCore { core, _ in core.error(message: message, receiptID: receipt) }
    }

    /// ERROR and the end: STOMP has no farewell for servers.
    func disconnect() {
        refuse("The server is going away", nil)
    }
}

extension HTTPLoopbackClient {
    /// An answer of known length.
    func answer(_ status: Int, _ headers: HTTPHeaders = [:], body: [UInt8] = []) {
        withCore { core, now in
            // A client that has gone gets nothing more; what no head can carry becomes a fault of ours.
            do throws(HTTPResponseError) {
                try core.respond(
                    HTTPResponseHead(status: status, headers: headers),
                    body: body,
                    at: now
                )
            } catch {
                try? core.respond(HTTPResponseHead(status: 500), at: now)
            }
        }
    }

    func send(_ events: [LoopbackEvent]) {
        if endIfSlow() { return }
        var writer = ByteWriter()
        for event in events {
            // The type was checked when it was published.
            try? EventStreamEncoder.encode(
                type: event.type,
                data: event.data,
                id: String(event.id),
                into: &writer
            )
        }
        let bytes = writer.bytes
        withCore(.immediate) { core, _ in core.stream(bytes) }
    }

    /// The end of the stream, if there is one, and of the connection.
    func disconnect() {
        withCore { core, now in
            core.endStream(at: now)
            core.close()
        }
    }
}

/// A connection, from the moment it was accepted.
enum LoopbackMember: Sendable {
    /// A WebSocket that is being asked for.
    case opening(WebSocketStream)
    case mqtt(MQTTLoopbackClient)
    case stomp(STOMPLoopbackClient)
    case http(HTTPLoopbackClient)

    func cut() {
        switch self {
        case .opening(let socket): socket.close()
        case .mqtt(let client): client.cut()
        case .stomp(let client): client.cut()
        case .http(let client): client.cut()
        }
    }

    func abandon() {
        switch self {
        case .opening(let socket): socket.abandon()
        case .mqtt(let client): client.abandon()
        case .stomp(let client): client.abandon()
        case .http(let client): client.abandon()
        }
    }

    func disconnect() {
        switch self {
        case .opening(let socket): socket.close()
        case .mqtt(let client): client.disconnect()
        case .stomp(let client): client.disconnect()
        case .http(let client): client.disconnect()
        }
    }

    /// True when no byte waits to leave, and no exchange of QoS 1 or 2 is open.
    var isIdle: Bool {
        switch self {
        case .opening: false
        case .mqtt(let client):
            client.unsentByteCount == 0
                && client.withCore(.paced) { core, _ in !core.hasMessagesUnderWay }
        case .stomp(let client): client.unsentByteCount == 0
        case .http(let client): client.unsentByteCount == 0
        }
    }
}
