import Dispatch
import WireCore

/// Calls a user's handler: in its context, one call at a time, and never after a cancellation.
struct HandlerCall<Value: Sendable>: Sendable {
    private let isCancelled = RaisedFlag()
    private let handler: @Sendable (Value, RaisedFlag) async -> Void

    /// A handler with an isolation of its own.
    init(_ handler: @escaping @Sendable (Value) async -> Void) {
        self.handler = { value, isCancelled in
            guard !isCancelled.isRaised else { return }
            await handler(value)
        }
    }

    init(on queue: DispatchQueue, _ handler: @escaping @Sendable (Value) -> Void) {
        self.handler = { value, isCancelled in
            await withCheckedContinuation { continuation in
                queue.async {
                    // Checked on the queue, so that after a `cancel()` there no call follows.
                    if !isCancelled.isRaised { handler(value) }
                    continuation.resume()
                }
            }
        }
    }

    /// Calls the handler, and waits until it has returned.
    func callAsFunction(_ value: Value) async {
        await handler(value, isCancelled)
    }

    func cancel() {
        isCancelled.raise()
    }
}

/// A task that reports to a handler until it is cancelled.
struct HandlerTask<Argument: Sendable> {
    private let call: HandlerCall<Argument>
    private let task: Task<Void, Never>

    /// - Parameters:
    ///   - call: The handler.
    ///   - failure: Returns what the handler is told of an error; nil for nothing.
    ///   - body: Calls the handler.
    private init(
        _ call: HandlerCall<Argument>,
        failure: @escaping @Sendable (any Error) -> Argument?,
        _ body: @escaping @Sendable () async throws -> Void
    ) {
        self.call = call
        task = Task { @concurrent in
            do {
                try await body()
            } catch is CancellationError {
                // No call follows.
            } catch {
                if let last = failure(error) { await call(last) }
            }
        }
    }

    /// Ends the task, before the next call of the handler.
    var handle: RequestHandle {
        RequestHandle { [call, task] in
            call.cancel()
            task.cancel()
        }
    }
}

extension HandlerTask {
    /// Calls the handler with one value.
    init<Value>(
        _ call: HandlerCall<Argument>,
        value: @escaping @Sendable () async throws -> Value
    ) where Argument == Result<Value, any Error> {
        self.init(call, failure: { .failure($0) }) { await call(.success(try await value())) }
    }

    /// Calls the handler with each message of a subscription.
    init<Value>(
        _ call: HandlerCall<Argument>,
        messages: @escaping @Sendable () async throws -> Messages<Value>
    ) where Argument == Result<Value, any Error> {
        self.init(call, failure: { .failure($0) }) {
            for try await result in try await messages().results {
                await call(result.mapError { $0 })
            }
        }
    }

    /// Calls the handler with the updates of a subscription.
    init<Value>(
        _ call: HandlerCall<Argument>,
        subscribing begin: @escaping @Sendable () async throws -> Messages<Value>
    ) where Argument == SubscriptionUpdate<Value> {
        self.init(call, failure: { ($0 as? WaybillError).map { .ended($0) } }) {
            let messages = try await begin()
            await call(.subscribed(qos: messages.grantedQoS))
            for try await result in messages.results {
                switch result {
                case .success(let value): await call(.message(value))
                case .failure(let error): await call(.failure(error))
                }
            }
            await call(.ended(nil))
        }
    }
}
