package import Waybill
import WireCore

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// The messages that an earlier process has left in a store, until they are sent.
///
/// They are the requests of entries. The interceptors of a connection's provider run over them when that connection
/// sends them.
///
/// A message with an option that this process does not know stays in the store, for a program that knows it. So does one
/// with an option of an app's own that no interceptor takes out. That is reported once, and each later connection looks
/// again.
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
    private let now: @Sendable () -> Date
    private let state: Locked<State>

    private struct State: Sendable {
        /// The messages that are to be sent, in order.
        var waiting: [StoredMessage]
        var kept = Kept()
        /// The messages that were reported for their options.
        var reported: Set<StoredMessage.ID> = []
    }

    /// What the last look at the messages has found: those that wait for a program that knows their options.
    private struct Kept: Sendable {
        var count = 0
        /// ``Waybill/StoredKeys/generation`` at that look.
        var generation = 0
        /// Whether the transport has refused an option that other interceptors may take out.
        var isRefused = false
        /// The interceptors that have left it in; nil without any.
        var chain: RequestChain?
        /// The earliest expiry of the messages.
        var expiry: Date?

        mutating func add(_ message: StoredMessage) {
            count += 1
            if let end = message.expiry { expiry = min(expiry ?? end, end) }
        }

        mutating func noteRefused(_ chain: RequestChain?) {
            isRefused = true
            self.chain = chain?.withoutOriginal
        }

        /// Whether another look would find the same.
        func holds(for chain: RequestChain?, at now: () -> Date) -> Bool {
            guard generation == StoredKeys.generation else { return false }
            if let expiry, expiry <= now() { return false }
            guard isRefused else { return true }
            guard let former = self.chain, let chain else {
                return self.chain == nil && chain == nil
            }
            return former.isSame(as: chain)
        }
    }

    /// - Parameters:
    ///   - messages: The messages, in order.
    ///   - store: The store.
    ///   - hasQualities: Whether the protocol has qualities of service.
    ///   - keys: The keys of the options that the transport itself stores.
    ///   - events: Receives the reports.
    ///   - now: Returns the time, which ends expiries.
    package init(
        _ messages: [StoredMessage],
        of store: any SessionStore,
        hasQualities: Bool,
        knowing keys: [OptionName],
        reportingTo events: TransportEventSource,
        at now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.now = now
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

    /// Whether there is nothing to do for a provider, because each message waits for a program that knows its options.
    ///
    /// False if this process may know an option by now, or if a message has expired.
    ///
    /// - Complexity: O(1).
    package func isEmpty(for chain: RequestChain?) -> Bool {
        let (count, kept) = state.withLock { ($0.waiting.count, $0.kept) }
        return count == 0 || count == kept.count && kept.holds(for: chain, at: now)
    }

    /// The messages that are to be sent.
    package var waiting: [StoredMessage] { state.withLock { $0.waiting } }

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
        var kept = Kept()
        kept.generation = StoredKeys.generation
        for message in waiting {
            if let next = try await prepare(message, chain, packet, &kept) { prepared.append(next) }
        }
        state.withLock { $0.kept = kept }
        return prepared
    }

    private func prepare<Packet>(
        _ message: StoredMessage,
        _ chain: RequestChain?,
        _ packet: (StoredMessage, Request) throws(WaybillError) -> Packet,
        _ kept: inout Kept
    ) async throws -> Prepared<Packet>? {
        let stored: Request
        do { stored = try message.request(at: now()) } catch {
            guard error.code != .unsupported else { return keep(message, error, &kept) }
            return Prepared(message: message, packet: .failure(error))
        }
        guard !message.isAdapted, var attempts = chain?.attempts(at: stored) else {
            let packet = Self.result(message, stored, packet)
            if case .failure(let error) = packet, isForInterceptors(error) {
                kept.noteRefused(chain)
                return keep(message, error, &kept)
            }
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
                guard !isForInterceptors(error) else {
                    kept.noteRefused(chain)
                    return keep(message, error, &kept)
                }
                // If the message itself can be sent, that is the interceptors' fault, and others may do better.
                guard case .failure = Self.result(message, stored, packet) else {
                    return keep(message, error)
                }
                return Prepared(message: message, packet: .failure(error))
            }
        }
    }

    /// Whether the transport has refused an option that is stored for the interceptors of another provider.
    private func isForInterceptors(_ error: WaybillError) -> Bool {
        guard error.code == .unsupported, let option = error.option else { return false }
        return option.isStored && !keys.contains(option)
    }

    /// Leaves a message in the store, for a program that knows its options; reports it once.
    private func keep<Packet>(
        _ message: StoredMessage,
        _ error: WaybillError,
        _ kept: inout Kept
    ) -> Prepared<Packet>? {
        kept.add(message)
        let isNew = state.withLock { $0.reported.insert(message.id).inserted }
        return isNew ? keep(message, error) : nil
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
