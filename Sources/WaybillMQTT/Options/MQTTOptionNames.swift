public import Waybill

// Options of messages: of sends, and of wills.
extension OptionName {
    /// Whether the server keeps a message for later subscribers.
    public static let retained = OptionKey<Bool>(stored: "retained")
    /// The time after which the server discards an undelivered message (MQTT 5).
    ///
    /// Of a received message, the rest of that time.
    public static var expiry: OptionKey<Duration> { storedExpiry }
    /// Whether a body is declared as text or as bytes (MQTT 5, 3.3.2.3.2).
    public static let payloadFormat = OptionKey<MQTTPayloadFormat>(stored: "payloadFormat")
    /// Whether a message of QoS 1 is sent at most once.
    ///
    /// Without this option, a message of QoS 2 is sent again after a lost connection.
    public static var sentOnce: OptionKey<Bool> { sentOnceOnly }
}

extension OptionName {
    /// The options that MQTT keeps with a stored message, beside the expiry, which is stored as a date.
    static let stored: [OptionName] = [retained, payloadFormat, responseTopic, correlationData]
}

// Options of subscriptions.
extension OptionName {
    /// Whether the server leaves out the client's own messages (MQTT 5).
    public static let noLocal = OptionKey<Bool>("noLocal")
    /// Whether messages keep the retain flag that they were sent with (MQTT 5).
    public static let retainAsPublished = OptionKey<Bool>("retainAsPublished")
    /// When the server sends retained messages (MQTT 5).
    public static let retainHandling = OptionKey<RetainHandling>("retainHandling")
    /// The identifier of a subscription (MQTT 5).
    public static let subscriptionIdentifier = OptionKey<SubscriptionIdentifier>(
        "subscriptionIdentifier"
    )
    /// The group of clients that share a subscription (MQTT 5).
    ///
    /// Without this option, each client of the group gets every message.
    public static let shareName = OptionKey<String>("shareName")
}

extension OptionName {
    /// The numbers of the app's choice of the subscriptions that a message matched (MQTT 5, 3.3.2.3.8).
    ///
    /// A key of messages. It has only those that a subscription of this transport has as its number
    /// (`SubscriptionIdentifier.number`), and only where the server sent them.
    public static let subscriptionIdentifiers = OptionKey<[UInt32]>("subscriptionIdentifiers")
    /// Enhanced authentication (MQTT 5); it cannot be left out.
    public static let authenticator = OptionName("authenticator", canBeOmitted: false)
}

// Options of connections, of their ends, and of acknowledgements.
extension OptionName {
    /// The client identifier.
    public static let clientIdentifier = OptionKey<String>("clientIdentifier")
    /// The message that the server publishes if the connection is lost.
    public static let will = OptionKey<Will>("will")
    /// The delay of the will (MQTT 5); see ``Will/delay``.
    public static let willDelay = OptionName("willDelay")
    /// Whether the server discards an earlier session.
    public static let cleanStart = OptionKey<Bool>("cleanStart")
    /// The time that the server keeps the session after the connection (MQTT 5).
    public static let sessionExpiry = OptionKey<Duration>("sessionExpiry")
    /// The time that pending sends of QoS 1 and 2 may take before the close.
    public static let drainTimeout = OptionKey<Duration>("drainTimeout")
    /// Whether the server publishes the will although the close is orderly (MQTT 5).
    public static let publishesWill = OptionKey<Bool>("publishesWill")
    /// The reason code of a disconnect or of a refusal (MQTT 5).
    public static let reasonCode = OptionKey<MQTTReason.Code>("reasonCode")
    /// The reason string of a disconnect, an acknowledgement or a refusal (MQTT 5).
    public static let reason = OptionKey<String>("reason")
    /// Whether an acknowledgement waits for the end of the exchange of its message.
    public static let awaitsCompletion = OptionKey<Bool>("awaitsCompletion")
}
