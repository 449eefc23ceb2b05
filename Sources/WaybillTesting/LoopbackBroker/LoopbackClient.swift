import MQTTWire
import STOMPWire
import WaybillLink
import WireCore

/// A client that speaks MQTT.
typealias MQTTLoopbackClient = LoopbackClient<MQTTServerConnection>
/// A client that speaks STOMP.
typealias STOMPLoopbackClient = LoopbackClient<STOMPServerConnection>

/// One connection to the broker, whatever it speaks.
final class LoopbackClient<Core: ProtocolCore>: Sendable {
    let identifier: UInt64
    private let driver: Driver<Core>

    init(identifier: UInt64, core: Core, stream: any ByteStream, timers: any TimerSource) {
        self.identifier = identifier
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

    func cut() {
        driver.close()
    }
}

extension MQTTLoopbackClient {
    func send(_ message: MQTTOutgoingMessage) {
        withCore(.paced) { core, _ in core.send(message) }
    }

    /// DISCONNECT, which 3.1.1 does not have, and the end.
    func disconnect() {
        withCore { core, _ in
            core.disconnect(MQTTDisconnect(reasonCode: .administrativeAction))
        }
    }
}

extension STOMPLoopbackClient {
    func send(_ delivery: LoopbackDelivery) {
        withCore(.paced) { core, now in
            // A client that is leaving gets nothing more; the message waits for another one.
            try? core.message(delivery.headers, body: delivery.body, at: now)
        }
    }

    /// The work that a request asked for is done.
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

/// A connection, from the moment it was accepted.
enum LoopbackMember: Sendable {
    /// A WebSocket that is being asked for.
    case opening(WebSocketStream)
    case mqtt(MQTTLoopbackClient)
    case stomp(STOMPLoopbackClient)

    func cut() {
        switch self {
        case .opening(let socket): socket.close()
        case .mqtt(let client): client.cut()
        case .stomp(let client): client.cut()
        }
    }

    func disconnect() {
        switch self {
        case .opening(let socket): socket.close()
        case .mqtt(let client): client.disconnect()
        case .stomp(let client): client.disconnect()
        }
    }
}
