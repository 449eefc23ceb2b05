import Foundation

/// What a run must have, by the variables of `.ci/run`.
package enum TestRequirements {
    /// Whether a server, a command or a library that is not there is a failure.
    package static let areRequired =
        ProcessInfo.processInfo.environment["WAYBILL_REQUIRE_SERVERS"] == "1"
}
