/// Hands each element to a function, from this call on, until the sequence ends or fails, or the task is cancelled.
///
/// A task with a loop of its own begins to observe when it first runs. On a busy machine that is late.
///
/// - Returns: The task that observes. After a cancellation it still hands over the elements that wait.
@discardableResult
package func observe<Elements: AsyncSequence & Sendable>(
    _ elements: Elements,
    _ body: @escaping @Sendable (Elements.Element) -> Void
) -> Task<Void, Never> {
    let observed = elements.makeAsyncIterator()
    return Task {
        var iterator = observed
        // `next(isolation:)` and the type of the error are there since macOS 15.
        while let element = try? await iterator.next() { body(element) }
    }
}
