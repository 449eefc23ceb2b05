package import WireCore

extension MQTTClientConnection {
    // MARK: Connecting

    /// Sends CONNECT, once and first (MQTT 5, 3.1.0-1 and 3.1.0-2).
    ///
    /// - Parameters:
    ///   - packet: The request; its version is the configuration's.
    ///   - hasSessionState: Whether a session is expected at the server: without one, a server that
    ///     claims to have it breaks the protocol (MQTT 5, 3.2.2-4).
    ///   - session: What an earlier connection has left; see ``resumeSession(at:)``.
    ///   - now: The time.
    /// - Throws: `MQTTSendError.encoding`; nothing was written then.
    package mutating func connect(
        _ packet: MQTTConnect,
        hasSessionState: Bool,
        resuming session: MQTTSessionState = MQTTSessionState(),
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard case .idle = state else { throw .notConnected }
        try writeChecked(.connect(packet), at: now)
        adopt(session)
        asked = Asked(packet)
        isUnanswered = true
        self.hasSessionState = hasSessionState
        keepAlive = MQTTKeepAlive(interval: .seconds(Int64(packet.keepAlive)), at: now)
        state = .connecting(deadline: now.advanced(by: configuration.connectTimeout))
    }

    /// Sends DISCONNECT and ends the connection; nothing is sent after it (MQTT 5, 3.14.4-1).
    ///
    /// - Parameters:
    ///   - packet: Reason and properties, for 3.1.1 those of an end as planned. What is there to be read by people
    ///     is left out where the server takes no packet that long (MQTT 5, 3.14.2-3 and 3.14.2-4).
    ///   - now: The time.
    package mutating func disconnect(
        _ packet: MQTTDisconnect = MQTTDisconnect(),
        at now: WireInstant
    ) {
        switch state {
        case .connecting, .connected:
            do { try writeChecked(.disconnect(packet), at: now) } catch {
                var terse = MQTTDisconnect(reasonCode: packet.reasonCode)
                let expiry = packet.properties.sessionExpiryInterval
                terse.properties.sessionExpiryInterval = expiry
                do { try writeChecked(.disconnect(terse), at: now) } catch {
                    // Three bytes, which a connected server takes.
                    write(.disconnect(MQTTDisconnect(reasonCode: packet.reasonCode)), at: now)
                }
            }
        case .idle, .closed: break
        }
        close(.disconnected)
    }

    // MARK: Publishing

    /// Sends a message of QoS 0: done when it is handed over.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func publishAtMostOnce(
        _ publish: MQTTPublish,
        payload: some WireBytes,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try check(publish)
        try writer.write(publish, payload: payload)
        noteSent(at: now)
    }

    /// Sends a message of QoS 1 or 2 as soon as the window has a place for it, and the session is
    /// resumed.
    ///
    /// - Parameters:
    ///   - message: What to send.
    ///   - call: Who waits for ``MQTTClientEvent/published(_:_:_:)``.
    ///   - timeout: How long it waits; nil for the configuration's.
    ///   - now: The time.
    /// - Throws: `MQTTSendError`; nothing was written or queued then.
    package mutating func publish(
        _ message: MQTTOutgoingMessage,
        call: (any MQTTCall)?,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try check(message.publish)
        let deadline = now.advanced(by: timeout ?? configuration.acknowledgementTimeout)
        try publisher.submit(message, call: call, deadline: deadline, to: &writer)
        noteSent(at: now)
    }

    /// What the server's CONNACK forbids, before any byte.
    private func check(_ publish: MQTTPublish) throws(MQTTSendError) {
        guard case .connected = state else { throw .notConnected }
        try limits.check(publish)
        guard !publish.properties.contains(.subscriptionIdentifier) else {
            throw .subscriptionIdentifierNotAllowed
        }
    }

    // MARK: Subscribing

    /// Sends SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - subscriptions: The filters and their options, at least one.
    ///   - identifier: The subscription identifier, where the server takes them; nil for none.
    ///   - call: Who waits for ``MQTTClientEvent/subscribed(_:_:)``.
    ///   - timeout: How long it waits; nil for the configuration's.
    ///   - now: The time.
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func subscribe(
        _ subscriptions: [MQTTSubscription],
        identifier: UInt32? = nil,
        call: any MQTTCall,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard case .connected = state else { throw .notConnected }
        for subscription in subscriptions { try check(subscription) }
        var properties = MQTTProperties()
        if let identifier, limits.subscriptionIdentifiersAvailable {
            properties.subscriptionIdentifiers = [identifier]
        }
        try request(
            .subscribe(count: subscriptions.count),
            call: call,
            timeout: timeout,
            at: now
        ) {
            .subscribe(
                MQTTSubscribe(
                    packetIdentifier: $0,
                    subscriptions: subscriptions,
                    properties: properties
                )
            )
        }
    }

    /// Sends UNSUBSCRIBE.
    ///
    /// - Parameters:
    ///   - filters: The filters, at least one.
    ///   - userProperties: What else the server is told (MQTT 5, 3.10.2.1.2).
    ///   - call: Who waits for ``MQTTClientEvent/unsubscribed(_:_:)``; nil for nobody.
    ///   - timeout: How long it waits; nil for the configuration's.
    ///   - now: The time.
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func unsubscribe(
        _ filters: [String],
        userProperties: [MQTTUserProperty] = [],
        call: (any MQTTCall)?,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard case .connected = state else { throw .notConnected }
        var properties = MQTTProperties()
        properties.userProperties = userProperties
        try request(.unsubscribe(count: filters.count), call: call, timeout: timeout, at: now) {
            .unsubscribe(
                MQTTUnsubscribe(packetIdentifier: $0, filters: filters, properties: properties)
            )
        }
    }

    private func check(_ subscription: MQTTSubscription) throws(MQTTSendError) {
        let filter: MQTTTopicFilter
        do { filter = try MQTTTopicFilter(subscription.filter) } catch { throw .encoding(error) }
        guard filter.shareName == nil || limits.sharedSubscriptionAvailable else {
            throw .sharedSubscriptionsNotSupported
        }
        guard
            limits.wildcardSubscriptionAvailable || !filter.filter.utf8.contains(where: isWildcard)
        else { throw .wildcardSubscriptionsNotSupported }
    }

    private func isWildcard(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "#") || byte == UInt8(ascii: "+")
    }

    private mutating func request(
        _ exchange: MQTTInflight.Exchange,
        call: (any MQTTCall)?,
        timeout: Duration?,
        at now: WireInstant,
        packet: (UInt16) -> MQTTPacket
    ) throws(MQTTSendError) {
        let deadline = now.advanced(by: timeout ?? configuration.acknowledgementTimeout)
        guard let identifier = publisher.inflight.begin(exchange, call: call, deadline: deadline)
        else {
            throw .noPacketIdentifierLeft
        }
        do {
            try writeChecked(packet(identifier), at: now)
        } catch {
            publisher.inflight.end(identifier)
            throw error
        }
        if call != nil { publisher.noteDeadline(deadline) }
    }

    // MARK: Taking messages

    /// Acknowledges an inbound message, in its turn.
    ///
    /// The receipt of a QoS 2 message holds for as long as its session, connected or not; that of a
    /// QoS 1 message for its connection, after which the server delivers the message again.
    ///
    /// - Parameters:
    ///   - receipt: What came with the message.
    ///   - reasonCode: `success`, or why it is refused (MQTT 5; 3.1.1 cannot say so).
    ///   - now: The time.
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode = .success,
        at now: WireInstant
    ) -> Bool {
        guard case .connected = state else { return receiver.settle(receipt, reasonCode) }
        let isFirst = receiver.acknowledge(receipt, reasonCode, to: &writer)
        noteSent(at: now)
        return isFirst
    }

    // MARK: Giving up

    /// Withdraws a call: a message that still waits is not sent; whatever was sent goes on, and its
    /// outcome is told to nobody.
    package mutating func cancel(_ call: any MQTTCall) {
        publisher.cancel(call)
    }
}
