import MQTTWire
import Waybill
import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The messages that an earlier process has left in the store.
///
/// They are the requests of entries. The first connection runs the interceptors of its provider over them, before it
/// resumes the session. With a store that keeps exchanges, a session that the server still has continues theirs.
///
/// | a message | in a session that continues | otherwise |
/// | --- | --- | --- |
/// | the server has it (PUBREC) | its PUBREL is sent | given up by ``MQTTSession``, and reported |
/// | can be sent | PUBLISH with DUP | a new PUBLISH |
/// | an interceptor fails, or makes what cannot be sent of what could be | waits for the next connection, and is reported | the same |
/// | has an option that this process does not know, or that no interceptor takes out | waits for a process that knows it, and is reported once | the same |
/// | cannot be sent, QoS 2 | PUBREL ends its exchange; given up, and reported | given up, and reported |
/// | cannot be sent, QoS 1 | given up, and reported | the same |
///
/// The server may have the exchange of a message of QoS 2 that waits, so no other message gets its packet identifier.
final class MQTTLeftMessages: Sendable {
    typealias Prepared = LeftMessages.Prepared<MQTTOutgoingMessage>

    private let left: LeftMessages
    private let version: MQTTVersion
    /// Whether the packet identifiers of messages follow from their numbers in the store.
    let keepsExchanges: Bool

    private var store: any SessionStore { left.store }

    private init(_ left: LeftMessages, keepsExchanges: Bool, _ version: MQTTVersion) {
        self.left = left
        self.keepsExchanges = keepsExchanges
        self.version = version
    }

    /// Reads the store.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - clientIdentifier: The client identifier whose exchanges continue; nil if none do.
    ///   - version: The version of MQTT.
    ///   - events: Receives the reports.
    /// - Returns: The messages, and the state at the end of the last transport; nil if the store keeps no exchanges.
    /// - Throws: `limitExceeded`, if the store cannot be read: messages would be lost, or arrive twice.
    static func read(
        _ store: any SessionStore,
        of clientIdentifier: String?,
        _ version: MQTTVersion,
        reportingTo events: TransportEventSource
    ) throws(WaybillError) -> (left: MQTTLeftMessages, session: MQTTSessionState?) {
        var session: MQTTSessionState?
        if let clientIdentifier,
            try LeftMessages.reading({ try store.beginSession(clientIdentifier) })
        {
            session = MQTTSessionState(
                received: try LeftMessages.reading { try store.receivedIdentifiers() }
            )
        }
        var messages = try LeftMessages.reading { try store.messages() }
        let isReleased = { (message: StoredMessage) in
            message.stage == .released && message.qos == 2
        }
        let released = session == nil ? [] : messages.filter(isReleased)
        if !released.isEmpty {
            let last = Dictionary(
                released.map { (MQTTOutgoingMessage.reservedIdentifier($0.id), $0.id) },
                uniquingKeysWith: max
            )
            messages.removeAll { message in
                guard !isReleased(message) else { return true }
                let identifier = MQTTOutgoingMessage.reservedIdentifier(message.id)
                // An earlier message with the identifier of a released one has ended. Only its removal was not stored.
                guard let next = last[identifier], next > message.id,
                    // Or it waits for a program that knows its options, and has kept no identifier in a lost session.
                    message.isKnown(to: OptionName.stored)
                else { return false }
                store.remove(message.id)
                return true
            }
        }
        let left = MQTTLeftMessages(
            LeftMessages(
                messages,
                of: store,
                hasQualities: true,
                knowing: OptionName.stored,
                reportingTo: events
            ),
            keepsExchanges: session != nil,
            version
        )
        for message in released {
            let ended = session?.restore(
                Self.released(message),
                isReleased: true,
                call: left.call(of: message)
            )
            (ended as? MQTTStoredCall)?.didEnd()
        }
        return (left, session)
    }

    // MARK: Before a connection is resumed

    /// Runs the interceptors over the messages, and makes their packets.
    ///
    /// - Parameter chain: The interceptors of the connection's provider; nil without any.
    /// - Returns: The messages in order, without those whose interceptors have failed.
    /// - Throws: `CancellationError`.
    func prepare(_ chain: RequestChain?) async throws -> [Prepared] {
        try await left.prepare(chain, packet: packet)
    }

    private func packet(
        _ message: StoredMessage,
        _ request: Request
    ) throws(WaybillError) -> MQTTOutgoingMessage {
        var request = request
        // The exchange has begun with this quality of service.
        request.command.qos = message.quality
        // An interceptor that adds an expiry has added it to the stored one, which has begun, too.
        if let stated = request.command[.expiry], let end = message.expiry {
            request.command[.expiry] = min(stated, StoredMessage.expiry(end.timeIntervalSinceNow))
        }
        let publish = try MQTTPublishMapping.packet(request, version: version)
        try MQTTPublishMapping.check(publish, request, version: version)
        return MQTTOutgoingMessage(
            publish: publish,
            payload: request.body,
            storedNumber: message.id,
            isSentAnew: true,
            suspicion: ReplaySuspicion.Record(ends: message.suspiciousEnds)
        )
    }

    /// Makes the packet of a message whose exchange ends with PUBREL.
    ///
    /// It is not sent, so it needs nothing that a version of MQTT or a check could refuse.
    private static func released(_ message: StoredMessage) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            publish: MQTTPublish(topic: message.topic, qos: .exactlyOnce),
            payload: Payload(),
            storedNumber: message.id,
            isSentAnew: true
        )
    }

    // MARK: The connection takes them

    /// Gives messages to a connection, before its session is resumed; with the core's lock held.
    ///
    /// - Parameters:
    ///   - prepared: The messages.
    ///   - core: The core of the connection.
    ///   - continues: Whether the server has the session.
    ///   - now: The time.
    /// - Returns: What follows with no lock held.
    func give(
        _ prepared: [Prepared],
        to core: inout MQTTClientConnection,
        continues: Bool,
        at now: WireInstant
    ) -> [@Sendable () -> Void] {
        guard core.isConnected else { return [] }
        left.take(Set(prepared.map(\.message.id)))
        var calls: [@Sendable () -> Void] = []
        let restores = keepsExchanges && continues
        let kept = restores ? left.waiting.filter { $0.qos == 2 }.map(\.id) : []
        core.keepIdentifiers(of: kept)
        for item in prepared {
            let message = item.message
            switch item.packet {
            case .success(var packet):
                packet.noteAccepted(at: now)
                if restores {
                    core.restore(packet, isReleased: false, call: call(of: message))
                } else if let error = send(packet, item, to: &core, at: now) {
                    calls.append { self.left.end(message, error) }
                }
            case .failure(let error):
                guard restores, message.qos == 2, core.isFree(message.id) else {
                    calls.append { self.left.end(message, error) }
                    continue
                }
                // The server may have it: PUBREL ends that exchange. A server without it only answers.
                let removal = MQTTStoredCall { [store] in store.remove(message.id) }
                core.restore(Self.released(message), isReleased: true, call: removal)
                calls.append { self.left.report(message, error) }
            }
        }
        return calls
    }

    /// Sends a message as a new one.
    ///
    /// - Returns: The reason why it can never be sent; nil if it is sent.
    private func send(
        _ packet: MQTTOutgoingMessage,
        _ item: Prepared,
        to core: inout MQTTClientConnection,
        at now: WireInstant
    ) -> WaybillError? {
        let (message, never) = (item.message, Duration.seconds(Int64.max))
        do throws(MQTTSendError) {
            try core.publish(packet, call: call(of: message), timeout: never, at: now)
        } catch {
            let request = item.request ?? Request(topic: message.topic, command: .send)
            return MQTTErrorMapping.error(error, request)
        }
        left.reportSent(message, item.request)
        return nil
    }

    /// Makes the call of a message that no task waits for.
    private func call(of message: StoredMessage) -> MQTTStoredCall {
        MQTTStoredCall { [store] in
            store.remove(message.id)
        } didAnswer: { [self] code, properties in
            let request = Request(topic: message.topic, command: .send(qos: message.quality))
            do throws(WaybillError) {
                _ = try MQTTErrorMapping.receipt(request, code, properties)
                left.report(message, nil)
            } catch {
                left.report(message, error)
            }
        } didDrop: { [self] _, dropped in
            left.end(message, MQTTErrorMapping.error(dropped.cause))
        }
    }
}
