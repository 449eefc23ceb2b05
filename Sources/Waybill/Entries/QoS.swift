/// The quality of service of a message, in MQTT's terms.
public enum QoS: Int, CaseIterable, Comparable, Hashable, Sendable {
    /// Delivered once or not at all; a send is complete when it is handed to the link.
    case atMostOnce = 0
    /// Delivered once or more often; a send is complete when the peer has acknowledged it.
    case atLeastOnce = 1
    /// Delivered exactly once; a send is complete when the peer has acknowledged it and will not accept it twice.
    case exactlyOnce = 2

    /// Orders by the strength of the guarantee.
    public static func < (left: QoS, right: QoS) -> Bool {
        left.rawValue < right.rawValue
    }
}
