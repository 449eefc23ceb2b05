import Foundation

/// Changes valid bytes in small ways: bytes are replaced, removed, repeated, cut off or joined.
package enum Mutations {
    /// True when the extended set was asked for.
    package static let isExtended =
        ProcessInfo.processInfo.environment["WAYBILL_EXTENDED"] == "1"

    /// The number of inputs for a suite: few by default, ten million in the extended set.
    package static var count: Int { isExtended ? 10_000_000 : 5_000 }

    /// Yields now and then. A loop of minutes would otherwise hold one of the few threads.
    package static func giveWay(at index: Int) async {
        if index.isMultiple(of: 500) { await Task.yield() }
    }

    /// Calls `body` with inputs made from the seeds.
    ///
    /// - Parameters:
    ///   - seeds: Valid inputs.
    ///   - count: The number of inputs.
    ///   - seed: The seed of the random numbers. The same seed gives the same run.
    ///   - body: Must not trap.
    package static func run(
        _ seeds: [[UInt8]],
        count: Int,
        seed: UInt64,
        _ body: ([UInt8]) -> Void
    ) async {
        var random = SeededGenerator(seed: seed)
        for index in 0..<count {
            await giveWay(at: index)
            var bytes = seeds.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) { mutate(&bytes, seeds, &random) }
            body(bytes)
        }
    }

    private static func mutate(
        _ bytes: inout [UInt8],
        _ seeds: [[UInt8]],
        _ random: inout SeededGenerator
    ) {
        guard !bytes.isEmpty else { return }
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch UInt8.random(in: 0..<6, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.remove(at: index)
        case 3: bytes.insert(bytes[index], at: index)
        case 4: bytes.removeSubrange(index...)
        default: bytes += seeds.randomElement(using: &random) ?? []
        }
    }
}
