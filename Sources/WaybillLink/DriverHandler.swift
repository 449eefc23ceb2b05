/// The receiver of a core's events and of the end.
///
/// Its closures are called one at a time, with no lock held.
package struct DriverHandler<Event: Sendable>: Sendable {
    let receive: @Sendable ([Event]) -> Void
    let end: @Sendable (LinkError?) -> Void
    let drained: @Sendable () -> Void

    /// - Parameters:
    ///   - receive: Takes events, in order.
    ///   - end: Called once, after the last event; the error is nil if this side closed the stream.
    ///   - drained: Called once, from any thread, for each ``Driver/requestDrainNotice()`` that returned true,
    ///     unless the end comes first.
    package init(
        receive: @escaping @Sendable ([Event]) -> Void,
        end: @escaping @Sendable (LinkError?) -> Void,
        drained: @escaping @Sendable () -> Void = {}
    ) {
        self.receive = receive
        self.end = end
        self.drained = drained
    }
}
