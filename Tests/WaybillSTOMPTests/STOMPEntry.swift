import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

typealias STOMPEntry = CommandEntry

extension CommandEntry {
    static func send(
        _ text: String,
        to topic: String = "/queue/t",
        headers: Headers = [:],
        _ options: SendOption...
    ) -> STOMPEntry {
        .command(
            .send(options: options),
            topic: topic,
            body: .bytes(Array(text.utf8)),
            headers: headers
        )
    }

    static func subscribe(
        _ topic: String = "/queue/t",
        headers: Headers = [:],
        _ options: SubscribeOption...
    ) -> STOMPEntry {
        .command(.subscribe(options: options), topic: topic, headers: headers)
    }

    static func unsubscribe(_ topic: String = "/queue/t") -> STOMPEntry {
        .command(.unsubscribe, topic: topic)
    }

    static func ack(_ id: Message.ID, in transaction: String? = nil) -> STOMPEntry {
        .command(.ack(id, options: transaction.map { [.transaction($0)] } ?? []))
    }

    static func nack(_ id: Message.ID, in transaction: String? = nil) -> STOMPEntry {
        .command(.nack(id, options: transaction.map { [.transaction($0)] } ?? []))
    }

    static func begin(_ name: String) -> STOMPEntry { .command(.begin(transaction: name)) }
    static func commit(_ name: String) -> STOMPEntry { .command(.commit(transaction: name)) }
    static func abort(_ name: String) -> STOMPEntry { .command(.abort(transaction: name)) }
}

/// The services that carry STOMP frames.
let services: [LoopbackBroker.Service] = [.stomp, .stompOverWebSocket]

extension Fixture {
    init(
        _ service: LoopbackBroker.Service = .stomp,
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws {
        try self.init(service: service, change)
    }

    func transport(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> STOMPTransport {
        var configuration = STOMPConfiguration()
        configuration.reconnection = .never
        // A machine that also builds is slow.
        configuration.timeouts.connect = .seconds(60)
        configuration.timeouts.confirmation = .seconds(60)
        configuration.timeouts.reply = .seconds(120)
        change(&configuration)
        return try STOMPTransport(url: broker.url(for: service), configuration: configuration)
    }

    func provider(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>) {
        let transport = try transport(change)
        return (transport, Provider(transport: transport))
    }
}

/// A transport of STOMP 1.2 whose connections follow scripts.
func scripted(
    _ scripts: [ScriptedByteStream],
    clock: ManualClock = ManualClock(),
    _ change: (inout STOMPConfiguration) -> Void = { _ in }
) throws -> (STOMPTransport, Provider<STOMPEntry>) {
    var configuration = STOMPConfiguration()
    configuration.versions = [.v1_2]
    change(&configuration)
    ScriptRecord.note(scripts)
    let transport = try STOMPTransport(
        scripts: scripts,
        clock: clock,
        configuration: configuration
    )
    return (transport, Provider(transport: transport))
}

/// Shuts a transport down that a script does not answer, so that its limit has to pass.
func shutDown(_ transport: STOMPTransport, moving clock: ManualClock) async throws {
    let isDown = Locked(false)
    Task {
        await transport.shutdown()
        isDown.withLock { $0 = true }
    }
    try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) { isDown.withLock { $0 } }
}
