package import Waybill

/// For what the first words of a connection are prepared.
package struct ConnectOccasion: Sendable {
    /// Whether there was a connection before, which was lost.
    package var isReconnection: Bool
    /// That the server did not accept the credentials that were prepared before.
    package var refusal: WaybillError?

    package init(isReconnection: Bool, refusal: WaybillError? = nil) {
        self.isReconnection = isReconnection
        self.refusal = refusal
    }
}
