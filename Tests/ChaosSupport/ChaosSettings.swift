import Foundation

/// What may be set from outside for the runs with a ``ChaosProxy``.
package enum ChaosSettings {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment["WAYBILL_CHAOS_\(name)"].flatMap { UInt64($0) }
    }

    /// Whether the runs are made: `WAYBILL_CHAOS=1`.
    ///
    /// Apart from the extended set: a test that waits for a process holds threads of the pool, of which there are
    /// few, and others would wait for minutes.
    package static let areWanted = ProcessInfo.processInfo.environment["WAYBILL_CHAOS"] == "1"

    /// How many messages go in each direction: `WAYBILL_CHAOS_MESSAGES`.
    package static func messageCount(default count: Int) -> Int {
        number("MESSAGES").map { Int(clamping: $0) } ?? count
    }

    /// How many faults come in each direction at least: `WAYBILL_CHAOS_FAULTS`.
    package static func faultCount(default count: Int) -> Int {
        number("FAULTS").map { Int(clamping: $0) } ?? count
    }

    /// How long the soak lasts in seconds: `WAYBILL_CHAOS_SOAK`; without it there is none.
    package static let soakTime = number("SOAK").map { Duration.seconds(Int64(clamping: $0)) }

    /// What makes the faults repeat themselves: `WAYBILL_CHAOS_SEED`, else another one for each run.
    package static var seed: UInt64 { number("SEED") ?? UInt64.random(in: 0 ... .max) }
}
