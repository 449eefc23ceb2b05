import WireCore

/// Everything that a transport takes from the world: connections, time and randomness.
///
/// The only seam that tests need: with a pair or a script for the dialer, a manual clock and fixed
/// numbers, a transport runs as it does in production and repeats itself to the bit.
package struct LinkEnvironment: Sendable {
    private struct Values: Sendable {
        var dialer: any Dialer
        var makeTimers: @Sendable () throws(LinkError) -> any TimerSource
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

    // Out of line: each part of a transport holds it, and nearly always the same one.
    private var box: Box

    private var values: Values {
        get { box.values }
        set { box = Box(newValue) }
    }

    /// Opens streams.
    package var dialer: any Dialer {
        get { box.values.dialer }
        set { values.dialer = newValue }
    }

    /// Gives a clock for one connection; the caller invalidates it.
    package var makeTimers: @Sendable () throws(LinkError) -> any TimerSource {
        get { box.values.makeTimers }
        set { values.makeTimers = newValue }
    }

    /// Gives random bits.
    package var random: @Sendable () -> UInt64 {
        get { box.values.random }
        set { values.random = newValue }
    }

    /// Gives many of them at once, so many words.
    package var randomWords: @Sendable (Int) -> [UInt64] {
        get { box.values.randomWords }
        set { values.randomWords = newValue }
    }

    /// Gives what watches the way to the network, and the caller stops; nil where nobody knows.
    package var makeReachability: (@Sendable () -> any Reachability)? {
        get { box.values.makeReachability }
        set { values.makeReachability = newValue }
    }

    package init(
        dialer: any Dialer,
        makeTimers: @escaping @Sendable () throws(LinkError) -> any TimerSource,
        random: @escaping @Sendable () -> UInt64,
        randomWords: (@Sendable (Int) -> [UInt64])? = nil,
        makeReachability: (@Sendable () -> any Reachability)? = nil
    ) {
        box = Box(
            Values(
                dialer: dialer,
                makeTimers: makeTimers,
                random: random,
                randomWords: randomWords ?? { count in (0..<count).map { _ in random() } },
                makeReachability: makeReachability
            )
        )
    }

    /// What a transport takes when its maker says nothing else: the system's own, or what a simulation has put in its
    /// place for the present thread.
    package static var system: LinkEnvironment { simulated ?? real }

    private static let real = LinkEnvironment(
        dialer: systemDialer,
        makeTimers: systemTimers,
        random: { UInt64.random(in: .min ... .max) },
        randomWords: SystemRandom.words,
        makeReachability: systemReachability
    )

    #if os(Linux)
        private static let systemDialer = TCPDialer()
        private static let systemTimers: @Sendable () throws(LinkError) -> any TimerSource = {
            () throws(LinkError) in try SharedTimers()
        }
        private static let systemReachability: (@Sendable () -> any Reachability)? = nil
    #else
        private static let systemDialer = NetworkDialer()
        private static let systemTimers: @Sendable () throws(LinkError) -> any TimerSource = {
            () throws(LinkError) in DispatchTimers()
        }
        private static let systemReachability: (@Sendable () -> any Reachability)? = {
            NetworkPathMonitor()
        }
    #endif

    // MARK: Simulation

    /// What stands for the system where a thread simulates, once it was installed.
    ///
    /// An object, since a bare closure behind a lock would be wrapped once more each time that it is looked at.
    private final class Override: Sendable {
        let environment: @Sendable () -> LinkEnvironment?

        init(_ environment: @escaping @Sendable () -> LinkEnvironment?) {
            self.environment = environment
        }
    }

    private static let simulation = Locked<Override?>(nil)

    /// Puts other environments in the place of the system's; once per process.
    ///
    /// A second call changes nothing. While `override` returns an environment, the present thread is simulated: there,
    /// sockets and clocks of the system are refused (``refuseInSimulation(_:)``).
    ///
    /// - Parameter override: Returns the environment of the present thread; nil for the system's. Called with no lock held.
    package static func installOverride(_ override: @escaping @Sendable () -> LinkEnvironment?) {
        let override = Override(override)
        simulation.withLock { $0 = $0 ?? override }
    }

    /// The environment that a simulation has for the present thread.
    private static var simulated: LinkEnvironment? {
        guard let override = simulation.withLock({ $0 }) else { return nil }
        return override.environment()
    }

    /// Whether a simulation has an environment for the present thread.
    static var isSimulated: Bool { simulated != nil }

    /// Throws on a thread that is simulated: what is real runs on threads and by clocks that no seed decides.
    /// - Parameter what: What was asked for, with its article.
    /// - Throws: `LinkError.unsupported`.
    static func refuseInSimulation(_ what: String) throws(LinkError) {
        if isSimulated { throw .unsupported("\(what) inside a simulation") }
    }
}
