package import Waybill
package import WaybillLink

extension Driver {
    /// Suspends for the pause of a send that awaits no answer.
    ///
    /// - Parameters:
    ///   - pause: The pause.
    ///   - request: The request of the send.
    /// - Throws: `connectionLost` if the connection ended before the bytes had left; `CancellationError`.
    package func wait(for pause: SendPause, of request: Request) async throws {
        do { try await wait(for: pause) } catch let error as LinkError {
            throw WaybillError(error).about(request)
        }
    }
}
