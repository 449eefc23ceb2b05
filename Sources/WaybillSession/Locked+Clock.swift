package import Waybill
package import WaybillLink
package import WireCore

extension Locked where State: Sendable {
    /// Runs `body` under the lock with the clock that is kept behind it, which is made if there is none.
    ///
    /// One that was read before, and let go of by the last who waited, would never fire.
    ///
    /// - Parameters:
    ///   - clock: Where the clock is kept while somebody waits by it.
    ///   - make: Makes one.
    ///   - body: What is to be done.
    /// - Returns: What `body` returns.
    /// - Throws: `WaybillError` when no clock can be made, and what `body` throws.
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
