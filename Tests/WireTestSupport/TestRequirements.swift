import Foundation

/// The requirements of a run, from the variables of `.ci/run`.
package enum TestRequirements {
    /// True when a missing server, command or library is a failure.
    package static let areRequired =
        ProcessInfo.processInfo.environment["WAYBILL_REQUIRE_SERVERS"] == "1"
}
