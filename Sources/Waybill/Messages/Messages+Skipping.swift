extension Messages {
    /// The same messages without failures: messages that cannot be decoded or that an interceptor refuses are skipped.
    ///
    /// ```swift
    /// for try await message in messages.skippingFailures { … }
    /// ```
    ///
    /// Each skipped message is reported as a ``TransportEvent`` of the kind `skipped`. A failure of the subscription
    /// itself is thrown.
    public var skippingFailures: SkippingFailures { SkippingFailures(base: self) { _ in } }

    /// The same messages without failures; each failure is passed to a closure.
    ///
    /// ```swift
    /// let valid = messages.skippingFailures { error in print(error) }
    /// for try await message in valid { … }
    /// ```
    ///
    /// - Parameter report: Called by the task of the loop with the error of each skipped message, in its turn.
    /// - Returns: The messages without failures.
    public func skippingFailures(
        _ report: @escaping @Sendable (WaybillError) -> Void
    ) -> SkippingFailures {
        SkippingFailures(base: self, report: report)
    }

    /// The messages of a subscription without failures.
    public struct SkippingFailures: AsyncSequence, Sendable {
        let base: Messages
        let report: @Sendable (WaybillError) -> Void

        /// Begins to iterate.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(
                iterator: base.makeAsyncIterator(),
                handle: base.handle,
                report: report
            )
        }

        /// An iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var iterator: Messages.AsyncIterator
            let handle: MessageHandle
            let report: @Sendable (WaybillError) -> Void

            /// Returns the next element, skipping failures; nil when the subscription has ended.
            ///
            /// - Throws: `WaybillError` if the subscription itself failed; `CancellationError`.
            public mutating func next() async throws -> Element? {
                while let result = try await iterator.nextResult() {
                    switch result {
                    case .success(let element): return element
                    case .failure(let error):
                        handle.reportSkipped(error)
                        report(error)
                    }
                }
                return nil
            }

            /// Does the same as ``next()``, on the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Element? {
                try await next()
            }
        }
    }
}

/// The origin of the messages of a provider.
struct MessageOrigin: Sendable {
    /// The topic and the command of the subscription; nil for a stream of every message.
    let topic: String?
    let command: String?
    /// The source to which skipped messages are reported, as long as messages can arrive.
    var events: TransportEventSource?
    /// The decoders of the provider.
    let decoders: [any BodyDecoder]
}
