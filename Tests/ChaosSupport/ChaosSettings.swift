import Foundation

/// Settings from the environment for the runs with a ``ChaosProxy``.
package enum ChaosSettings {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment["WAYBILL_CHAOS_\(name)"].flatMap { UInt64($0) }
    }

    /// True when the runs are wanted: `WAYBILL_CHAOS=1`.
    ///
    /// They are not part of the extended set: a test that waits for a process holds a thread of the small pool, and
    /// other tests would wait for minutes.
    package static let areWanted = ProcessInfo.processInfo.environment["WAYBILL_CHAOS"] == "1"

    /// The number of messages in each direction: `WAYBILL_CHAOS_MESSAGES`.
    package static func messageCount(default count: Int) -> Int {
        number("MESSAGES").map { Int(clamping: $0) } ?? count
    }

    /// The smallest number of faults in each direction: `WAYBILL_CHAOS_FAULTS`.
    package static func faultCount(default count: Int) -> Int {
        number("FAULTS").map { Int(clamping: $0) } ?? count
    }

    /// The length of the soak in seconds: `WAYBILL_CHAOS_SOAK`; nil for no soak.
    package static let soakTime = number("SOAK").map { Duration.seconds(Int64(clamping: $0)) }

    /// The seed of the faults: `WAYBILL_CHAOS_SEED`, or a random one for each run.
    package static var seed: UInt64 { number("SEED") ?? UInt64.random(in: 0 ... .max) }
}
