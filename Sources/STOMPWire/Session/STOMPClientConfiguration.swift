/// The settings of every connection of a client.
package struct STOMPClientConfiguration: Sendable {
    /// The limits of a frame.
    package var limits = STOMPLimits()
    /// The time limit for CONNECTED.
    package var connectTimeout = Duration.seconds(10)
    /// The time limit for a RECEIPT.
    package var receiptTimeout = Duration.seconds(15)
    /// The time limit for the RECEIPT of DISCONNECT.
    package var closeTimeout = Duration.seconds(5)
    /// The number of requests that may wait for their receipts; further requests are held.
    package var maximumInFlight = 200
    /// Whether requests of the demand `automatic` go without a receipt when the server sends none.
    package var learnsReceipts = true
    /// When SEND has a content-length.
    package var contentLength = STOMPContentLength.automatic
    /// Whether frames are reported as ``STOMPClientEvent/trace(_:)``.
    package var isTracing = false

    package init() {}
}
