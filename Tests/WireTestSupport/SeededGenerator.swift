/// Random numbers that depend on the seed alone.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    /// Makes a linear congruential step, then mixes the bits by multiplications and shifts.
    package mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        var mixed = state
        mixed = (mixed ^ (mixed >> 32)) &* 0xD6E8_FEB8_6659_FD93
        mixed = (mixed ^ (mixed >> 29)) &* 0xA24B_AED4_963E_E407
        return mixed ^ (mixed >> 32)
    }
}
