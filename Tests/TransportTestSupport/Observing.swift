/// Hands each element to a function, from this call on, until the sequence ends or the task is cancelled.
///
/// A task with a loop of its own begins to observe when it first runs. On a busy machine that is late.
///
/// - Returns: The task that observes. After a cancellation it still hands over the elements that wait.
@discardableResult
package func observe<Elements: AsyncSequence & Sendable>(
    _ elements: Elements,
    _ body: @escaping @Sendable (Elements.Element) -> Void
) -> Task<Void, Never> where Elements.Failure == Never {
    let observed = elements.makeAsyncIterator()
    return Task {
        var iterator = observed
        while let element = await iterator.next(isolation: nil) { body(element) }
    }
}
