import WireCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Random numbers that a seed decides.
struct SimulationDice: RandomNumberGenerator {
    private var state: UInt64

    /// - Parameters:
    ///   - seed: The seed of the run.
    ///   - use: What for: each use has numbers of its own, so that one more draw here leaves those there as they are.
    init(seed: UInt64, use: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 &+ use &* 0xD1B5_4A32_D192_ED03
        _ = next()
    }

    /// A linear congruential step, whose bits are then mixed by multiplications and shifts.
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        var mixed = state
        mixed = (mixed ^ (mixed >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        mixed = (mixed ^ (mixed >> 29)) &* 0xC4CE_B9FE_1A85_EC53
        return mixed ^ (mixed >> 32)
    }

    /// A number from 0 up to, and without, `count`.
    mutating func below(_ count: Int) -> Int {
        count <= 1 ? 0 : Int(next() % UInt64(count))
    }

    /// From 0 up to, and without, 1.
    mutating func fraction() -> Double {
        Double(next() >> 11) / 9_007_199_254_740_992
    }

    /// Whether something happens that happens so often.
    mutating func chance(_ probability: Double) -> Bool {
        fraction() < probability
    }

    /// A time between two.
    mutating func duration(_ range: ClosedRange<Duration>) -> Duration {
        let low = range.lowerBound.wireNanoseconds
        let width = range.upperBound.wireNanoseconds - low
        return .nanoseconds(low + Int64(fraction() * Double(width)))
    }

    /// A time whose logarithm is evenly spread between two, so that short ones are as likely as long ones.
    mutating func spread(_ range: ClosedRange<Duration>) -> Duration {
        let low = max(Double(range.lowerBound.wireNanoseconds), 1)
        let high = max(Double(range.upperBound.wireNanoseconds), low)
        // 2 to the power of a part of the number of doublings.
        return .nanoseconds(Int64(low * exp2(fraction() * log2(high / low))))
    }

    /// The time until something happens that happens once in `mean`, whenever it happened before.
    mutating func wait(mean: Duration) -> Duration {
        // Never all at one instant, which time would not get past.
        let mean = max(Double(mean.wireNanoseconds), 1_000_000)
        return .nanoseconds(Int64(-log(1 - fraction()) * mean) + 1)
    }

    /// One of them.
    mutating func pick<Value>(_ values: [Value]) -> Value {
        values[below(values.count)]
    }
}
