/// The settings of every connection of a server.
package struct STOMPServerConfiguration: Sendable {
    package var versions = STOMPVersion.allCases
    /// The limits of a frame.
    package var limits = STOMPLimits()
    /// The time limit for CONNECT.
    package var connectTimeout = Duration.seconds(10)
    /// The broker's time limit for the receipts that are owed at DISCONNECT.
    package var closeTimeout = Duration.seconds(5)
    /// The number of frames to hold until the broker's decision about CONNECT.
    package var maximumHeldFrameCount = 64
    /// Whether frames are reported as ``STOMPServerEvent/trace(_:)``.
    package var isTracing = false

    package init() {}
}
