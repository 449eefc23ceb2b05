package import Waybill
package import WaybillLink
import WireCore

/// Asks a source for credentials before each attempt, and keeps the last ones in case the server refuses them.
package final class CredentialProvider: Sendable {
    private let source: CredentialSource
    private let clock: any TimerSource
    private let last = Locked<Credentials?>(nil)

    /// - Parameters:
    ///   - source: The source.
    ///   - environment: The clock.
    package init(_ source: CredentialSource, in environment: LinkEnvironment) {
        self.source = source
        clock = environment.clock
    }

    /// Returns the credentials for an attempt.
    ///
    /// - Throws: `WaybillError`: the source's own, `timedOut` if the source does not answer in time, `notConnected` for
    ///   an error of another type; or `CancellationError`.
    package func credentials(for occasion: ConnectOccasion) async throws -> Credentials {
        let refused = occasion.refusal == nil ? nil : last.withLock { $0 }
        let source = source
        let answer = Promise<Credentials>()
        let task = answer.resolve {
            try await source.credentials(
                .init(isReconnection: occasion.isReconnection, refused: refused)
            )
        }
        defer { task.cancel() }
        do {
            guard
                let credentials = try await answer.value(within: source.timeout, by: clock)
            else {
                throw WaybillError(.timedOut, "no credentials within the time allowed")
            }
            last.withLock { $0 = credentials }
            return credentials
        } catch let error as WaybillError {
            throw error
        } catch {
            try Task.checkCancellation()
            throw WaybillError(
                .notConnected,
                "there are no credentials to be had",
                underlying: error
            )
        }
    }
}
