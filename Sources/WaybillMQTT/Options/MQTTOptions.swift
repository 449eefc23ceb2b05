public import Waybill

extension SendOption {
    /// The server keeps the message for later subscribers.
    public static var retained: Self { Self(.retained, true) }

    /// The time after which the server discards an undelivered message (MQTT 5), in whole seconds.
    public static func expiry(_ time: Duration) -> Self { Self(.expiry, time) }

    /// What the body is declared as (MQTT 5, 3.3.2.3.2: the payload format indicator); without it nothing is declared.
    public static func payloadFormat(_ format: MQTTPayloadFormat) -> Self {
        Self(.payloadFormat, format)
    }

    /// A message of QoS 1 is sent at most once, although the server confirms it.
    ///
    /// The message is not stored, does not wait in the offline queue, and is not sent again over another connection. If
    /// the connection ends before the server confirms it, the send fails with `connectionLost`: the message may have
    /// arrived or not. A retry policy repeats such a failure only with `idempotent`. `waitsForConnection` makes no
    /// difference.
    ///
    /// For values that are soon replaced by newer ones. With QoS 0 it makes no difference. With QoS 2, and where sends
    /// are not MQTT's, it is `unsupported`.
    public static var sentOnce: Self { Self(.sentOnce, true) }
}

/// What a body is declared as (MQTT 5, 3.3.2.3.2: the payload format indicator).
///
/// The kind of the body decides nothing by itself, because a declared send takes two bytes more, and a server may check
/// it.
public enum MQTTPayloadFormat: UInt8, StorableOptionValue {
    /// Bytes without a format.
    case bytes = 0
    /// Text: the body must be UTF-8, else the request fails with `invalidEntry`.
    case text = 1
}

/// When the server sends retained messages (MQTT 5, 3.8.3.1).
public enum RetainHandling: Hashable, Sendable {
    /// At each subscription; what happens without this option.
    case send
    /// At a subscription that is new to the server.
    case sendIfNew
    /// Never.
    case doNotSend
}

/// The identifier of a subscription (MQTT 5, 3.8.2.1.2).
public enum SubscriptionIdentifier: Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// The transport chooses one where the server supports identifiers; what happens without this option.
    ///
    /// It finds the listeners of a message by the identifiers. Copies that a server sends for overlapping filters are
    /// then told apart.
    case automatic
    /// None: the topics of messages decide which filters get them.
    ///
    /// A server that sends a copy for each of several overlapping filters then delivers to each of them more than once.
    case omitted
    /// The number of the app's choice, from 1 to 268,435,455; others are refused with `invalidEntry`.
    ///
    /// All filters of one subscription have the same number. Two subscriptions cannot have the same: `invalidEntry`.
    /// Automatic numbers count up from 1. One of them is refused, too, if its subscription and this one have a topic in
    /// common. Numbers from 1,000 on rarely meet one.
    ///
    /// A message with the number counts for the subscription only if its topic matches.
    /// `message[.subscriptionIdentifiers]` tells which of the app's numbers a message matched.
    case number(UInt32)

    /// The number of the app's choice.
    public init(integerLiteral value: UInt32) { self = .number(value) }

    /// Whether the app has chosen the number.
    package var isNumber: Bool {
        if case .number = self { true } else { false }
    }
}

extension SubscribeOption {
    /// The server leaves out the client's own messages (MQTT 5).
    public static var noLocal: Self { Self(.noLocal, true) }

    /// Messages keep the retain flag that they were sent with (MQTT 5).
    public static var retainAsPublished: Self { Self(.retainAsPublished, true) }

    /// When the server sends retained messages (MQTT 5).
    public static func retainHandling(_ handling: RetainHandling) -> Self {
        Self(.retainHandling, handling)
    }

    /// The name of the group of clients that share the subscription (MQTT 5, 4.8.2).
    ///
    /// The server gives each message to one client of the group. The topic stays the plain filter, to which a topic
    /// style applies: the transport subscribes to `$share/NAME/FILTER`. A name is not empty and has no `/`, `+` or `#`,
    /// else `invalidEntry`. `noLocal` is not allowed with it. MQTT 3.1.1 has no shared subscriptions: `unsupported`. A
    /// topic that begins with `$share/` is still sent as it is, for servers that know it in 3.1.1, too.
    public static func shareName(_ name: String) -> Self { Self(.shareName, name) }

    /// The identifier of the subscription, which the server adds to its messages (MQTT 5, 3.8.2.1.2).
    public static func subscriptionIdentifier(_ identifier: SubscriptionIdentifier) -> Self {
        Self(.subscriptionIdentifier, identifier)
    }
}

extension UnsubscribeOption {
    /// The name of the group that the subscription is shared with (MQTT 5): the share name of the subscription that ends.
    public static func shareName(_ name: String) -> Self { Self(.shareName, name) }
}

extension ConnectOption {
    /// The client identifier; the server keeps a session under this name.
    public static func clientIdentifier(_ identifier: String) -> Self {
        Self(.clientIdentifier, identifier)
    }

    /// The message that the server publishes if the connection is lost.
    public static func will(_ will: Will) -> Self { Self(.will, will) }

    /// Whether the server discards an earlier session.
    public static func cleanStart(_ isClean: Bool) -> Self { Self(.cleanStart, isClean) }

    /// The time that the server keeps the session after the connection (MQTT 5, 3.1.2.11.2), in whole seconds;
    /// 4,294,967,295 and more mean forever.
    ///
    /// Zero ends the session with the connection.
    public static func sessionExpiry(_ time: Duration) -> Self { Self(.sessionExpiry, time) }
}

extension AckOption {
    /// The reason code of a refusal (MQTT 5, tables 3-4 and 3-5); without it `.unspecifiedError`.
    ///
    /// The codes are 0x80, 0x83, 0x87, 0x90, 0x91, 0x97 and 0x99; others, and any code of an `ack`, are refused with
    /// `invalidEntry`.
    public static func reasonCode(_ code: MQTTReason.Code) -> Self { Self(.reasonCode, code) }

    /// A reason string (MQTT 5, 3.4.2.2.2 and 3.5.2.2.2); left out where the packet would exceed the server's limit.
    ///
    /// Reason string and headers are also left out if another connection has followed before the packet is sent.
    public static func reason(_ text: String) -> Self { Self(.reason, text) }

    /// The request completes only when the exchange of a QoS 2 message is over: PUBREC was sent, PUBREL received, and
    /// PUBCOMP sent.
    ///
    /// Without it the request completes at once. At QoS 1 there is nothing to wait for. A refusal ends the exchange
    /// itself. A lost connection does not end the wait, because the exchange continues over the next connection. The
    /// request fails with `connectionLost` if the server has lost the session, or if no connection follows, and with
    /// `timedOut` after the transport's timeout of acknowledgements. The message counts as acknowledged in any case.
    public static var awaitsCompletion: Self { Self(.awaitsCompletion, true) }
}

extension DisconnectOption {
    /// The time that pending sends of QoS 1 and 2 may take before the close; zero waits for none.
    public static func drainTimeout(_ limit: Duration) -> Self { Self(.drainTimeout, limit) }

    /// The server publishes the will although the close is orderly (MQTT 5, 3.14.2.1: reason code 0x04).
    public static var publishesWill: Self { Self(.publishesWill, true) }

    /// A reason code that a client may send (MQTT 5, table 3-10), such as `.administrativeAction`; without it a normal
    /// end.
    public static func reasonCode(_ code: MQTTReason.Code) -> Self { Self(.reasonCode, code) }

    /// A reason string (MQTT 5, 3.14.2.2.3); left out where the packet would exceed the server's limit.
    public static func reason(_ text: String) -> Self { Self(.reason, text) }

    /// The time that the server keeps the session (MQTT 5, 3.14.2.2.2), in whole seconds; 4,294,967,295 and more mean
    /// forever.
    ///
    /// It may differ from zero only where the session expiry of the connection does. A session without expiry cannot get
    /// one at its end.
    public static func sessionExpiry(_ time: Duration) -> Self { Self(.sessionExpiry, time) }
}
