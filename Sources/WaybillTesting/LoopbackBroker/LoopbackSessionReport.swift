/// An MQTT session as a test sees it.
package struct LoopbackSessionReport: Hashable, Sendable {
    package let clientIdentifier: String
    package let isConnected: Bool
    /// The filters of its subscriptions, in the order of their bytes.
    package let filters: [String]
    /// The messages of QoS 1 and 2 to the client that are under way or wait.
    package internal(set) var queuedMessageCount: Int
}
