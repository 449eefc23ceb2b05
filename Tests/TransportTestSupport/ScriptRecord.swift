import Testing
package import WaybillTesting
import WireCore
import WireTestSupport

/// The scripts of one test: a byte that differs from a script is a failure of the test, whatever else it checks.
package final class ScriptRecord: Sendable {
    @TaskLocal private static var current: ScriptRecord?

    private let scripts = Locked<[ScriptedByteStream]>([])

    init() {}

    /// Adds scripts to the record of the present test.
    package static func note(_ scripts: [ScriptedByteStream]) {
        current?.scripts.withLock { $0 += scripts }
    }

    private var failures: [String] { scripts.withLock { $0.flatMap(\.failures) } }

    /// Runs a test with this record; a wait ends as soon as bytes differ.
    func watch(_ body: @Sendable @concurrent () async throws -> Void) async throws {
        try await Self.$current.withValue(self) {
            try await WaitLimits.$fault.withValue({ self.failures.first }) {
                try await body()
            }
        }
    }

    /// Records what differed, once the test is over.
    func report() {
        for failure in failures { Issue.record("\(failure)") }
    }
}
