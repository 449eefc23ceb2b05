/// Options for unsubscribing.
public struct UnsubscribeOptions: Hashable, Sendable {
    /// The name of the group that the subscription is shared with (MQTT 5); nil for a subscription of its own.
    ///
    /// It is the ``SubscribeOptions/shareName`` of the subscription that ends.
    public var shareName: String?

    /// Makes a set of options; each parameter has the meaning of the property of the same name.
    public init(shareName: String? = nil) {
        self.shareName = shareName
    }
}
