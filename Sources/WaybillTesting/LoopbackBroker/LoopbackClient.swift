import MQTTWire
import WaybillLink
import WireCore

/// One connection to the broker.
final class LoopbackClient: Sendable {
    let identifier: UInt64
    private let driver: Driver<MQTTServerConnection>
    private let willBox = Locked<MQTTWill?>(nil)

    init(
        identifier: UInt64,
        stream: any ByteStream,
        timers: any TimerSource,
        maximumPacketSize: Int,
        isTracing: Bool
    ) {
        self.identifier = identifier
        let core = MQTTServerConnection(
            maximumPacketSize: maximumPacketSize,
            isTracing: isTracing,
            at: timers.now
        )
        driver = Driver(core: core, stream: stream, timers: timers)
    }

    /// What is to be published if the client goes without taking its leave.
    var will: MQTTWill? { willBox.withLock { $0 } }

    var version: MQTTVersion { driver.withCore { core, _ in core.version } }

    func start(
        _ handle: @escaping @Sendable (MQTTServerConnection.Event) -> Void,
        onEnd: @escaping @Sendable () -> Void
    ) {
        driver.start(
            .init(
                receive: { events in
                    for event in events { handle(event) }
                },
                end: { _ in onEnd() }
            )
        )
    }

    func accept(_ connack: MQTTConnack, will: MQTTWill?) {
        willBox.withLock { $0 = will }
        driver.withCore(.immediate) { core, _ in core.accept(connack) }
    }

    func refuse(_ reasonCode: MQTTReasonCode) {
        driver.withCore(.immediate) { core, _ in core.refuse(reasonCode) }
    }

    func send(_ message: MQTTOutgoingMessage) {
        driver.withCore { core, _ in core.send(message) }
    }

    func send(_ suback: MQTTSuback) {
        driver.withCore(.immediate) { core, _ in core.answer(suback) }
    }

    func send(_ unsuback: MQTTUnsuback) {
        driver.withCore(.immediate) { core, _ in core.answer(unsuback) }
    }

    func disconnect(_ reasonCode: MQTTReasonCode) {
        driver.withCore(.immediate) { core, _ in
            core.disconnect(MQTTDisconnect(reasonCode: reasonCode))
        }
    }

    func cut() {
        driver.close()
    }
}
