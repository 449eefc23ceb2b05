import WireCore

/// Ends what was begun with a completion handler.
public protocol CancelHandle: Sendable {
    /// Ends it; the handler is not called any more. Calling it twice does nothing.
    func cancel()
}

extension Provider {
    /// The completion-handler form: for a request the handler is called once; for a subscription once for
    /// each message, and once more if the subscription fails.
    ///
    /// - Parameters:
    ///   - type: What the reply or each message is; `String`, `Data` and `[UInt8]` take the body as it is.
    ///   - entry: Any entry. For one without a reply, such as `connect`, there is
    ///     ``request(entry:_:)``.
    ///   - completion: Called on the package's own threads, never at the same time as itself.
    /// - Returns: What ends it.
    @discardableResult
    public func request<Value: Decodable & Sendable>(
        of type: Value.Type,
        entry: Entry,
        _ completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> any CancelHandle {
        CompletionTask(completion) { report in
            guard case .subscribe = entry.command else {
                return report(.success(try await request(entry, as: type)))
            }
            try await forEach(try await messages(entry, as: type), report)
        }
    }

    /// The completion-handler form for raw messages; see ``request(of:entry:_:)``.
    ///
    /// - Parameters:
    ///   - type: `Message`.
    ///   - entry: Any entry.
    ///   - completion: Called on the package's own threads, never at the same time as itself.
    /// - Returns: What ends it.
    @discardableResult
    public func request(
        of type: Message.Type,
        entry: Entry,
        _ completion: @escaping @Sendable (Result<Message, any Error>) -> Void
    ) -> any CancelHandle {
        CompletionTask(completion) { report in
            guard case .subscribe = entry.command else {
                return report(.success(try await request(entry, as: type)))
            }
            try await forEach(try await messages(entry), report)
        }
    }

    /// The completion-handler form for requests without a reply.
    ///
    /// - Parameters:
    ///   - entry: Any entry but a subscription.
    ///   - completion: Called once on the package's own threads.
    /// - Returns: What ends it.
    @discardableResult
    public func request(
        entry: Entry,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> any CancelHandle {
        CompletionTask(completion) { report in report(.success(try await request(entry))) }
    }

    private func forEach<Value>(
        _ messages: Messages<Value>,
        _ report: (Result<Value, any Error>) -> Void
    ) async throws {
        for try await result in messages.results {
            report(result.mapError { $0 })
        }
    }
}

/// A task that reports to a handler until it is cancelled.
private final class CompletionTask<Value: Sendable>: CancelHandle {
    private let task: Task<Void, Never>

    init(
        _ completion: @escaping @Sendable (Result<Value, any Error>) -> Void,
        _ body: @escaping @Sendable ((Result<Value, any Error>) -> Void) async throws -> Void
    ) {
        task = Task { @concurrent in
            let report = { (result: Result<Value, any Error>) in
                guard !Task.isCancelled else { return }
                completion(result)
            }
            do {
                try await body(report)
            } catch is CancellationError {
                return
            } catch {
                report(.failure(error))
            }
        }
    }

    func cancel() {
        task.cancel()
    }
}
