/// Lets so many packets be unconfirmed while filters are restored.
struct MQTTPacketWindow {
    /// The number of filters in a packet that no broker with a known quota refuses.
    ///
    /// AWS IoT Core takes eight and closes the connection on more.
    static let leastQuota = 8

    private let size = 8
    private var count = 0

    /// Waits for a confirmation if the window is full.
    ///
    /// - Parameter group: The tasks that wait for a confirmation each; the caller adds one.
    /// - Throws: The error of the task that has ended.
    mutating func waitForRoom(in group: inout ThrowingTaskGroup<Void, any Error>) async throws {
        if count < size { count += 1 } else { try await group.next() }
    }
}
