/// What goes wrong in a simulated network, and how often.
///
/// A run draws for itself how much of it there is: some seeds leave a kind of fault out, others have three times as much, as
/// what is rare in general is frequent somewhere.
public struct SimulatedFaults: Sendable {
    /// One way to go wrong.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// A connection is refused.
        case refusal
        /// A connection attempt is not answered.
        case silence
        /// Bytes arrive in pieces.
        case split
        /// A write takes fewer bytes than it was given.
        case shortWrite
        /// Bytes are long under way.
        case stall
        /// A connection is reset. Both ends hear of it in a moment, except for an `unheardReset`.
        case reset
        /// One end does not hear that its connection was reset, as behind a router that has lost its table: it learns when it
        /// writes, or after a minute from the system's TCP keep-alive.
        case unheardReset
        /// Nothing more comes from one end, which does not know.
        case halfClose
        /// Something in the middle closes both directions.
        case close
        /// Nothing arrives any more, and neither end hears of it.
        case blackHole
        /// What was written over a connection that its client has reset arrives all the same: something on the way held it.
        case lateArrival
        /// A broker restarts and has kept its state.
        case restart
        /// A broker restarts and has forgotten everything.
        case loss
        /// A host cannot be reached for a while.
        case outage
    }

    /// When everything is well again, counted from the world's beginning; nothing goes wrong from then on.
    public var until: Duration
    /// How many of a hundred connection attempts are refused.
    public var refusals = 0.0
    /// How many of a hundred connection attempts are not answered.
    public var silences = 0.0
    /// How many of a hundred deliveries come in pieces.
    public var splits = 0.0
    /// How many of a hundred writes are cut short.
    public var shortWrites = 0.0
    /// How many of a hundred deliveries are late by up to ``longestStall``.
    public var stalls = 0.0
    /// How many of a hundred connections that their client resets still deliver what was under way.
    public var lateArrivals = 0.0
    /// The longest that bytes are held up.
    public var longestStall = Duration.seconds(8)
    /// How long bytes are under way otherwise, at the most.
    public var latency = Duration.milliseconds(2)
    /// How long a connection lives on average; nil lets it live.
    public var connectionLife: Duration?
    /// How many of a hundred ends do not hear that their connection was reset.
    ///
    /// An idle MQTT client then notices it with its next PINGREQ: with the default keep alive after up to a minute.
    public var unheardResets = 20.0
    /// How often each broker restarts with what it knows, on average; nil for never.
    public var restarts: Duration?
    /// How often each broker restarts without it, on average; nil for never.
    public var losses: Duration?
    /// How often each host cannot be reached, on average, for up to half a minute; nil for never.
    public var outages: Duration?

    /// Nothing goes wrong.
    public init(until: Duration = .zero) {
        self.until = until
    }

    /// Nothing goes wrong, and bytes take two milliseconds at the most.
    public static let none = SimulatedFaults()

    /// A bad mobile network, and servers that restart with what they know.
    ///
    /// - Parameter end: When everything is well again.
    /// - Returns: The faults.
    public static func rough(until end: Duration) -> SimulatedFaults {
        var faults = SimulatedFaults(until: end)
        faults.refusals = 5
        faults.silences = 3
        faults.splits = 30
        faults.shortWrites = 10
        faults.stalls = 2
        faults.lateArrivals = 30
        faults.latency = .milliseconds(200)
        faults.connectionLife = .seconds(15)
        faults.restarts = .seconds(60)
        faults.outages = .seconds(120)
        return faults
    }

    /// A connection that is lost now and then, as on a phone that is carried about.
    ///
    /// - Parameter end: When everything is well again.
    /// - Returns: The faults.
    public static func gentle(until end: Duration) -> SimulatedFaults {
        var faults = SimulatedFaults(until: end)
        faults.splits = 10
        faults.stalls = 1
        faults.longestStall = .seconds(2)
        faults.latency = .milliseconds(80)
        faults.connectionLife = .seconds(60)
        return faults
    }

    /// Some kinds left out and others more frequent, as the dice say.
    func varied(by dice: inout SimulationDice) -> SimulatedFaults {
        func vary(_ share: Double, _ dice: inout SimulationDice) -> Double {
            let factor = dice.pick([0, 0.3, 1, 1, 3])
            // Three times as much still lets something through, unless nothing was to get through.
            return min(share * factor, max(share, 90))
        }
        func vary(_ mean: Duration?, _ dice: inout SimulationDice) -> Duration? {
            let factor: Double? = dice.pick([nil, 0.3, 1, 1, 3])
            guard let mean, let factor else { return nil }
            return mean * factor
        }
        var varied = self
        varied.refusals = vary(refusals, &dice)
        varied.silences = vary(silences, &dice)
        varied.splits = vary(splits, &dice)
        varied.shortWrites = vary(shortWrites, &dice)
        varied.stalls = vary(stalls, &dice)
        varied.lateArrivals = vary(lateArrivals, &dice)
        varied.unheardResets = vary(unheardResets, &dice)
        varied.connectionLife = vary(connectionLife, &dice)
        varied.restarts = vary(restarts, &dice)
        varied.losses = vary(losses, &dice)
        varied.outages = vary(outages, &dice)
        return varied
    }
}
