package import Waybill
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The messages that an earlier process has left in a store, until they are sent.
///
/// They are the requests of entries. The interceptors of a connection's provider run over them when that connection
/// sends them.
///
/// A message with an option that this process does not know stays in the store, for a program that knows it. That is
/// reported once, and each later connection looks again.
package final class LeftMessages: Sendable {
    /// A message that is ready to be sent.
    package struct Prepared<Packet: Sendable>: Sendable {
        package let message: StoredMessage
        /// The request after the interceptors; nil if it is not sent.
        package var request: Request?
        /// The attempts of the interceptors; nil without any.
        package var attempts: RequestAttempts?
        /// What is sent, or the reason why it can never be sent.
        package let packet: Result<Packet, WaybillError>
    }

    package let store: any SessionStore
    private let events: TransportEventSource
    /// Whether the events name the quality of service.
    private let hasQualities: Bool
    /// The keys of the transport.
    private let keys: [OptionName]
    private let state: Locked<State>

    private struct State: Sendable {
        /// The messages that are to be sent, in order.
        var waiting: [StoredMessage]
        /// Those of them that were reported for an option that this process does not know.
        var unknown: Set<StoredMessage.ID> = []
    }

    /// - Parameters:
    ///   - messages: The messages, in order.
    ///   - store: The store.
    ///   - hasQualities: Whether the protocol has qualities of service.
    ///   - keys: The keys of the options that the transport itself stores.
    ///   - events: Receives the reports.
    package init(
        _ messages: [StoredMessage],
        of store: any SessionStore,
        hasQualities: Bool,
        knowing keys: [OptionName],
        reportingTo events: TransportEventSource
    ) {
        state = Locked(State(waiting: messages))
        self.keys = keys
        self.store = store
        self.hasQualities = hasQualities
        self.events = events
    }

    /// Reads from a store.
    ///
    /// - Throws: `limitExceeded`, with the store's error as `underlying`.
    package static func reading<Value>(
        _ body: () throws -> Value
    ) throws(WaybillError) -> Value {
        do {
            return try body()
        } catch {
            throw WaybillError(
                .limitExceeded,
                "the store could not be read: no transport was made",
                underlying: error
            )
        }
    }

    /// Whether no message is to be sent, but for those that wait for a program that knows their options.
    package var isEmpty: Bool {
        let (waiting, unknown) = state.withLock { ($0.waiting, $0.unknown) }
        // The process may know an option by now.
        return waiting.allSatisfy { unknown.contains($0.id) && !$0.isKnown(knowing: keys) }
    }

    // MARK: Before they are sent

    /// Runs the interceptors over the messages, and makes what is sent.
    ///
    /// - Parameters:
    ///   - chain: The interceptors of the connection's provider; nil without any.
    ///   - packet: Makes what is sent from a request after the interceptors; throws the reason why it can never be sent.
    /// - Returns: The messages in order, without those whose interceptors have failed.
    /// - Throws: `CancellationError`.
    package func prepare<Packet>(
        _ chain: RequestChain?,
        packet: (StoredMessage, Request) throws(WaybillError) -> Packet
    ) async throws -> [Prepared<Packet>] {
        var prepared: [Prepared<Packet>] = []
        for message in state.withLock({ $0.waiting }) {
            if let next = try await prepare(message, chain, packet) { prepared.append(next) }
        }
        return prepared
    }

    private func prepare<Packet>(
        _ message: StoredMessage,
        _ chain: RequestChain?,
        _ packet: (StoredMessage, Request) throws(WaybillError) -> Packet
    ) async throws -> Prepared<Packet>? {
        let stored: Request
        do { stored = try message.request(at: Date(), knowing: keys) } catch {
            guard error.code != .unsupported else {
                let isNew = state.withLock { $0.unknown.insert(message.id).inserted }
                return isNew ? keep(message, error) : nil
            }
            return Prepared(message: message, packet: .failure(error))
        }
        guard !message.isAdapted, var attempts = chain?.attempts(at: stored) else {
            let packet = Self.result(message, stored, packet)
            return Prepared(message: message, request: stored, packet: packet)
        }
        while true {
            let request: Request
            do { request = try await attempts.next() } catch let error as WaybillError {
                return keep(message, error)
            }
            let adapted = Self.result(message, request, packet)
            guard case .failure(let error) = adapted else {
                return Prepared(
                    message: message,
                    request: request,
                    attempts: attempts,
                    packet: adapted
                )
            }
            do {
                guard error.code == .unsupported else { throw error }
                // Once more without the option, if the provider allows that.
                try await attempts.waitForRetry(after: error)
            } catch let error as WaybillError {
                // If the message itself can be sent, that is the interceptors' fault, and others may do better.
                guard case .failure = Self.result(message, stored, packet) else {
                    return keep(message, error)
                }
                return Prepared(message: message, packet: .failure(error))
            }
        }
    }

    /// Leaves a message in the store, so that the next connection tries it again.
    private func keep<Packet>(_ message: StoredMessage, _ error: WaybillError) -> Prepared<Packet>?
    {
        report(message, error.arriving(true))
        return nil
    }

    private static func result<Packet>(
        _ message: StoredMessage,
        _ request: Request,
        _ packet: (StoredMessage, Request) throws(WaybillError) -> Packet
    ) -> Result<Packet, WaybillError> {
        guard request.command.kind == .send else {
            let error = WaybillError(.invalidEntry, "an interceptor has changed the command")
            return .failure(error.about(request))
        }
        do throws(WaybillError) {
            return .success(try packet(message, request))
        } catch {
            return .failure(error)
        }
    }

    // MARK: When they are sent

    /// Notes that messages are sent now, or given up.
    package func take(_ messages: Set<StoredMessage.ID>) {
        state.withLock { state in state.waiting.removeAll { messages.contains($0.id) } }
    }

    /// Notes that messages are to be sent again.
    package func putBack(_ messages: [StoredMessage]) {
        state.withLock { state in
            state.waiting += messages
            state.waiting.sort { $0.id < $1.id }
        }
    }

    /// Removes a message from the store, and reports how its send has ended.
    package func end(_ message: StoredMessage, _ error: WaybillError?) {
        store.remove(message.id)
        report(message, error)
    }

    /// Reports how the send of an earlier process has ended.
    package func report(_ message: StoredMessage, _ error: WaybillError?) {
        events.reportSend(
            message.topic,
            byteCount: message.body.count,
            qos: quality(of: message),
            error,
            since: nil
        )
    }

    /// Reports that a message was handed to a connection.
    package func reportSent(_ message: StoredMessage, _ request: Request?) {
        events.report(
            .sent(
                topic: request?.topic ?? message.topic,
                byteCount: request?.body.wireByteCount ?? message.body.count,
                qos: quality(of: message)
            )
        )
    }

    private func quality(of message: StoredMessage) -> QoS? {
        hasQualities ? message.quality : nil
    }
}
