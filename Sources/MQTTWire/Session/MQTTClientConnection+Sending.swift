package import WireCore

extension MQTTClientConnection {
    // MARK: Connecting

    /// Sends CONNECT, once and before all other packets (MQTT 5, 3.1.0-1 and 3.1.0-2).
    ///
    /// - Parameters:
    ///   - packet: The request; its version is the configuration's.
    ///   - hasSessionState: Whether the server is expected to have a session; otherwise Session Present is a violation
    ///     (MQTT 5, 3.2.2-4).
    ///   - session: The state from an earlier connection; see ``resumeSession(at:)``.
    ///   - now: The current time.
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
    ///   - packet: Reason and properties; for 3.1.1 those of a normal end. Texts are left out if the packet would
    ///     exceed the server's limit (MQTT 5, 3.14.2-3 and 3.14.2-4).
    ///   - now: The current time.
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
                    // Three bytes, which a connected server always accepts.
                    write(.disconnect(MQTTDisconnect(reasonCode: packet.reasonCode)), at: now)
                }
            }
        case .idle, .closed: break
        }
        close(.disconnected)
    }

    // MARK: Publishing

    /// Sends a message of QoS 0; it is complete when it is written.
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

    /// Sends a message of QoS 1 or 2 as soon as the session is resumed and the window has room.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - call: The call that waits for ``MQTTClientEvent/published(_:_:_:)``.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
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

    /// Checks a message against the limits of the server's CONNACK before anything is written.
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
    ///   - identifier: The subscription identifier, if the server supports it; nil for none.
    ///   - call: The call that waits for ``MQTTClientEvent/subscribed(_:_:)``.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
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
    ///   - userProperties: User properties for the server (MQTT 5, 3.10.2.1.2).
    ///   - call: The call that waits for ``MQTTClientEvent/unsubscribed(_:_:)``; nil for none.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
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

    /// Acknowledges an inbound message when its turn comes.
    ///
    /// The receipt of a QoS 2 message is valid as long as its session, also without a connection. The receipt of a QoS
    /// 1 message is valid for its connection; after that the server delivers the message again.
    ///
    /// - Parameters:
    ///   - receipt: The receipt that came with the message.
    ///   - reasonCode: `success`, or the reason of a refusal (MQTT 5; 3.1.1 cannot express one).
    ///   - now: The current time.
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

    /// Withdraws a call and its message, if that was not sent.
    ///
    /// A message that was sent completes its exchange, without a report of the outcome.
    package mutating func cancel(_ call: any MQTTCall) {
        publisher.cancel(call)
    }
}
