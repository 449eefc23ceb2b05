extension Messages {
    /// The same messages without those that fail: what cannot be decoded, or is refused by an interceptor, is skipped.
    ///
    /// ```swift
    /// for try await message in messages.skippingFailures { … }
    /// ```
    ///
    /// Each skipped message is a ``TransportEvent`` of the kind `skipped`. A failure of the subscription itself is thrown, as
    /// always.
    public var skippingFailures: SkippingFailures { SkippingFailures(base: self) { _ in } }

    /// The same messages without those that fail, each of which is reported.
    ///
    /// ```swift
    /// let valid = messages.skippingFailures { error in print(error) }
    /// for try await message in valid { … }
    /// ```
    ///
    /// - Parameter report: Called with the error of each message that is skipped, in its turn, by the task of the loop.
    /// - Returns: The messages that do not fail.
    public func skippingFailures(
        _ report: @escaping @Sendable (WaybillError) -> Void
    ) -> SkippingFailures {
        SkippingFailures(base: self, report: report)
    }

    /// The messages of a subscription without those that fail.
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

        /// One iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var iterator: Messages.AsyncIterator
            let handle: MessageHandle
            let report: @Sendable (WaybillError) -> Void

            /// The next element that does not fail; nil when the subscription has ended.
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

            /// As ``next()``, on the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Element? {
                try await next()
            }
        }
    }
}

/// Where the messages of a provider's subscription come from.
struct MessageOrigin: Sendable {
    /// What was subscribed to.
    let topic: String?
    /// Where skipped messages are reported, as long as messages come.
    var events: TransportEventSource?
}
