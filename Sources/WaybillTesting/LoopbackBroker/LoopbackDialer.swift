import WaybillLink

/// Connects to a loopback broker in memory, whatever the host and the port.
struct LoopbackDialer: Dialer {
    let broker: LoopbackBroker
    let service: LoopbackBroker.Service

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let pair = ByteStreamPair()
        broker.serve(pair.second, as: service)
        return pair.first
    }

    /// The surroundings of a client of the broker.
    ///
    /// - Parameter clock: Where its time comes from; nil for the system's.
    /// - Returns: The surroundings, with this dialer.
    func environment(_ clock: ManualClock?) -> LinkEnvironment {
        var environment = LinkEnvironment.system
        environment.dialer = self
        if let clock { environment.clock = clock.linkTimers }
        return environment
    }
}
