/// How surely a message is delivered, in MQTT's terms.
public enum QoS: Int, CaseIterable, Comparable, Hashable, Sendable {
    /// Once or not at all: done when it is handed to the link.
    case atMostOnce = 0
    /// Once or more often: done when the peer has acknowledged it.
    case atLeastOnce = 1
    /// Just once: done when the peer has acknowledged it and will not take it twice.
    case exactlyOnce = 2

    /// Orders by how sure the delivery is.
    public static func < (left: QoS, right: QoS) -> Bool {
        left.rawValue < right.rawValue
    }
}
