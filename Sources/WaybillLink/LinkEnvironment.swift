import WireCore

/// The environment of a transport: connections, time and randomness.
///
/// It is the only seam that tests need. With a pair or a script as the dialer, a manual clock and fixed numbers, a
/// transport runs as in production and is exactly reproducible.
package struct LinkEnvironment: Sendable {
    private struct Values: Sendable {
        var dialer: any Dialer
        var clock: any TimerSource
        var random: @Sendable () -> UInt64
        var randomWords: @Sendable (Int) -> [UInt64]
        var makeReachability: (@Sendable () -> any Reachability)?
    }

    private final class Box: Sendable {
        let values: Values

        init(_ values: Values) {
            self.values = values
        }
    }

    // Out of line: each part of a transport stores it, and nearly always the same one.
    private var box: Box

    private var values: Values {
        get { box.values }
        set { box = Box(newValue) }
    }

    package var dialer: any Dialer {
        get { box.values.dialer }
        set { values.dialer = newValue }
    }

    /// The clock of all that runs in this environment.
    package var clock: any TimerSource {
        get { box.values.clock }
        set { values.clock = newValue }
    }

    package var random: @Sendable () -> UInt64 {
        get { box.values.random }
        set { values.random = newValue }
    }

    /// Returns a number of random words.
    package var randomWords: @Sendable (Int) -> [UInt64] {
        get { box.values.randomWords }
        set { values.randomWords = newValue }
    }

    /// Makes an observer of the network, which the caller stops; nil if the platform has none.
    package var makeReachability: (@Sendable () -> any Reachability)? { values.makeReachability }

    package init(
        dialer: any Dialer,
        clock: any TimerSource,
        random: @escaping @Sendable () -> UInt64,
        randomWords: (@Sendable (Int) -> [UInt64])? = nil,
        makeReachability: (@Sendable () -> any Reachability)? = nil
    ) {
        box = Box(
            Values(
                dialer: dialer,
                clock: clock,
                random: random,
                randomWords: randomWords ?? { count in (0..<count).map { _ in random() } },
                makeReachability: makeReachability
            )
        )
    }

    /// The default environment of a transport: the system's, or that of a simulation on the present thread.
    package static var system: LinkEnvironment { simulated ?? real }

    private static let real = LinkEnvironment(
        dialer: systemDialer,
        clock: SystemClock.shared,
        random: { UInt64.random(in: .min ... .max) },
        randomWords: SystemRandom.words,
        makeReachability: systemReachability
    )

    #if os(Linux)
        private static let systemDialer = TCPDialer()
        private static let systemReachability: (@Sendable () -> any Reachability)? = nil
    #else
        private static let systemDialer = NetworkDialer()
        private static let systemReachability: (@Sendable () -> any Reachability)? = {
            NetworkPathMonitor()
        }
    #endif

    /// Waits for threads that have been told to end, so that nothing of the package runs after a shutdown.
    ///
    /// Blocks for the microseconds that an ending thread takes.
    package static func reclaim() {
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    // MARK: Simulation

    /// The environment of a simulation, after it was installed.
    ///
    /// An object, because a closure behind a lock would be wrapped again at each access.
    private final class Override: Sendable {
        let environment: @Sendable () -> LinkEnvironment?

        init(_ environment: @escaping @Sendable () -> LinkEnvironment?) {
            self.environment = environment
        }
    }

    private static let simulation = Locked<Override?>(nil)

    /// Installs environments that replace the system's; once per process.
    ///
    /// A second call has no effect. While `override` returns an environment, the present thread is simulated: it
    /// refuses the system's sockets and clocks (``refuseInSimulation(_:)``).
    ///
    /// - Parameter override: Returns the environment of the present thread; nil for the system's. Called without a
    ///   lock.
    package static func installOverride(_ override: @escaping @Sendable () -> LinkEnvironment?) {
        let override = Override(override)
        simulation.withLock { $0 = $0 ?? override }
    }

    /// The simulation's environment for the present thread.
    private static var simulated: LinkEnvironment? {
        guard let override = simulation.withLock({ $0 }) else { return nil }
        return override.environment()
    }

    /// Whether the present thread is simulated.
    static var isSimulated: Bool { simulated != nil }

    /// Throws on a simulated thread, because real threads and clocks do not depend on the simulation's seed.
    ///
    /// - Parameter what: The refused thing, with its article.
    /// - Throws: `LinkError.unsupported`.
    static func refuseInSimulation(_ what: String) throws(LinkError) {
        if isSimulated { throw .unsupported("\(what) inside a simulation") }
    }
}
