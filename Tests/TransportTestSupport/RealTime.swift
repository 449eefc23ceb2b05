import Foundation
package import Testing

extension Trait where Self == ConditionTrait {
    /// Keeps a test whose verdict depends on the time that passes out of every run but one.
    ///
    /// `Tests/real-time` runs these tests one after another, beside nothing else. It finds them by `RealTime` in the
    /// name of the suite or of the function. All other tests must pass however slow the machine is.
    package static var realTime: Self {
        .enabled(
            if: ProcessInfo.processInfo.environment["WAYBILL_REAL_TIME"] == "1",
            "it depends on the clock: Tests/real-time"
        )
    }
}
