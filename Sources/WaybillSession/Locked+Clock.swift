package import Waybill
package import WaybillLink
package import WireCore

extension Locked where State: Sendable {
    /// Runs `body` under the lock, with the clock of the state.
    ///
    /// Makes a clock if the state has none.
    ///
    /// The clock has to be read under the same lock: the last waiter may invalidate it at any other time, and an
    /// invalidated clock never fires.
    ///
    /// - Parameters:
    ///   - clock: The place of the clock, which is filled while a timer is set.
    ///   - make: Makes a clock.
    ///   - body: The work under the lock.
    /// - Returns: What `body` returns.
    /// - Throws: `WaybillError` if no clock can be made, and the errors of `body`.
    package func withClock<Result>(
        _ clock: WritableKeyPath<State, (any TimerSource)?>,
        _ make: @Sendable () throws(LinkError) -> any TimerSource,
        _ body: (inout State, any TimerSource) throws(WaybillError) -> Result
    ) throws(WaybillError) -> Result {
        var spare: (any TimerSource)?
        defer { spare?.invalidate() }
        while true {
            let offered = spare
            var isTaken = false
            let result = try withLock { state throws(WaybillError) -> Result? in
                if state[keyPath: clock] == nil, let offered {
                    state[keyPath: clock] = offered
                    isTaken = true
                }
                guard let timers = state[keyPath: clock] else { return nil }
                return try body(&state, timers)
            }
            if isTaken { spare = nil }
            if let result { return result }
            do throws(LinkError) { spare = try make() } catch { throw WaybillError(error) }
        }
    }
}
