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

    /// The system's own.
    package static let system = LinkEnvironment(
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
}
