package import MQTTWire
package import Waybill
package import WaybillLink
package import WaybillSession
package import WireCore

/// Why a connection ends, and the calls that end with it.
package struct MQTTConnectionEnd: Sendable {
    /// The core's reason; nil before.
    package var closure: MQTTClosure?
    /// The DISCONNECT packet; in MQTT 3.1.1 it has no fields.
    var disconnectPacket = MQTTDisconnect()
    /// The error of the calls that are unanswered at the end.
    package var abandonment: WaybillError {
        get { statedAbandonment?.value ?? .unanswered }
        set { statedAbandonment = Shared(newValue) }
    }
    // Out of line, because most connections have neither of the two errors.
    private(set) var statedAbandonment: Shared<WaybillError>?
    private var unanswered: [MQTTPendingCall] = []
    /// Whether the transport connected on its own.
    var isUnattended = false
    /// Whether this side ends the connection to have the server send messages again.
    var isMadeAgain = false
    /// The error of an authentication that this side has given up.
    private var authenticationFailure: Shared<WaybillError>?

    package init() {}

    /// The reason code of the server's DISCONNECT; nil without one.
    package var reasonCode: MQTTReasonCode? {
        guard case .disconnectedByServer(let code, _) = closure else { return nil }
        return code
    }

    /// The server's referral to other servers (MQTT 5, 4.11); nil without one.
    package var redirect: MQTTRedirect? {
        switch closure {
        case .refused(let code, let properties): MQTTRedirect(code, properties, isRefusal: true)
        case .disconnectedByServer(let code, let properties):
            MQTTRedirect(code, properties, isRefusal: false)
        default: nil
        }
    }

    /// Returns the cause of the end; nil if this side ended the connection.
    package func cause(_ error: LinkError?) -> WaybillError? {
        switch (closure, error) {
        case (.disconnected?, _) where isMadeAgain:
            WaybillError(.connectionLost, "made again, because messages found no room")
        case (.authenticationAbandoned?, _):
            authenticationFailure?.value ?? MQTTErrorMapping.error(.authenticationAbandoned)
        case (.endOfStream?, let error?), (nil, let error?): WaybillError(error)
        case (let closure?, _): MQTTErrorMapping.error(closure)
        case (nil, nil): nil
        }
    }

    /// What the end says about messages and filters.
    package enum Blame: Sendable {
        /// Nothing.
        case none
        /// The first unanswered request is the reason, and fails; or the credentials are.
        case request
        /// One of them may be the reason, and is sent again.
        case possible
        /// One of them is the reason, and has failed.
        case proven
    }

    /// What the end says about messages, restored filters and unanswered requests together.
    package func blame(
        _ finding: MQTTReplayFinding,
        _ verdict: SubscriptionSuspicion.Verdict
    ) -> Blame {
        switch (finding, verdict) {
        case (.rejected, _), (_, .proven): .proven
        case (.unclear, _), (.counted, _), (_, .counted): .possible
        case (.none, .none): refusesRequest ? .request : .none
        }
    }

    /// Whether the reason of the server's DISCONNECT is the first unanswered request, a SUBSCRIBE or an UNSUBSCRIBE.
    private var refusesRequest: Bool {
        guard !unanswered.isEmpty else { return false }
        let end = restoringEnd(nil)
        return end == .named || end == .refused
    }

    /// Returns the cause of the end, with what it says about messages and filters.
    ///
    /// A server that ends the connection because of one of them is no reason against another connection, where it is
    /// sent alone, or has failed. With Not authorized it or the credentials may be the reason, until it is proved.
    ///
    /// - Parameters:
    ///   - error: The error of the stream.
    ///   - blame: What the end says about requests.
    ///   - isAccepted: Whether the server had answered CONNECT.
    /// - Returns: The cause; nil if this side ended the connection.
    package func cause(
        _ error: LinkError?,
        _ blame: Blame,
        isAccepted: Bool = true
    ) -> WaybillError? {
        guard var cause = cause(error) else { return nil }
        let isNotAuthorized = reasonCode == .notAuthorized
        if blame != .none, let reasonCode, reasonCode != .sessionTakenOver,
            cause.code == .rejected || isNotAuthorized
        {
            cause = WaybillError(.connectionLost, cause.message, restating: cause)
            if blame == .proven { return cause }
        }
        if isNotAuthorized { cause.wordlessRefusal = .dismissal }
        if !isAccepted, replayEnd(error) == .closed { cause.wordlessRefusal = .silence }
        return cause
    }

    /// Why the connection has ended, for the messages that are sent again (MQTT 5, 3.14.2.1).
    package func replayEnd(_ error: LinkError?) -> ReplaySuspicion.End {
        switch (closure, error) {
        case (.disconnectedByServer(let code, _)?, _):
            switch code {
            case .packetTooLarge, .payloadFormatInvalid, .topicNameInvalid: .named
            case .notAuthorized: .refused
            case .serverBusy, .serverShuttingDown, .keepAliveTimeout, .sessionTakenOver,
                .quotaExceeded, .useAnotherServer, .serverMoved, .maximumConnectTime,
                .messageRateTooHigh, .connectionRateExceeded, .administrativeAction:
                .unrelated
            // These can only be about a SUBSCRIBE or an UNSUBSCRIBE.
            case .topicFilterInvalid, .sharedSubscriptionsNotSupported,
                .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported:
                .unrelated
            default: .closed
            }
        case (.endOfStream?, let error?): ReplaySuspicion.End(error)
        default: .unrelated
        }
    }

    /// Why the connection has ended, for the filters that it restores (MQTT 5, 3.14.2.1).
    func restoringEnd(_ error: LinkError?) -> ReplaySuspicion.End {
        switch reasonCode {
        case .topicFilterInvalid, .sharedSubscriptionsNotSupported,
            .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported:
            return .named
        default:
            let end = replayEnd(error)
            return end == .named ? .closed : end
        }
    }

    /// Whether this side gave the connection up, and not the peer.
    package func isGivenUp(_ error: LinkError?) -> Bool {
        switch closure {
        case .connectTimedOut?, .disconnected?: true
        // No error means that this side has closed the stream.
        case .endOfStream?, nil: error == nil
        default: false
        }
    }

    /// Notes the error of an authentication that this side gives up.
    ///
    /// An error of the app's code ends neither an open connection for good, nor the attempts to restore one.
    package mutating func abandonAuthentication(_ error: WaybillError, isRepetition: Bool) {
        guard authenticationFailure == nil else { return }
        authenticationFailure =
            Shared(isRepetition || isUnattended ? error.retryableIfForeign : error)
    }

    /// Keeps a call that fails when the connection is over, so that a retry makes a new connection.
    package mutating func add(_ call: any MQTTCall) {
        if let call = call as? MQTTPendingCall { unanswered.append(call) }
    }

    /// Fails the calls.
    ///
    /// - Parameters:
    ///   - cause: The cause of the end.
    ///   - refusesFirst: Whether the server has ended the connection because of the first one.
    package func failCalls(_ cause: WaybillError?, refusesFirst: Bool = false) {
        for (index, call) in unanswered.enumerated() {
            guard index == 0, refusesFirst else {
                call.fail(abandonment)
                continue
            }
            let message = "the server answered the request by ending the connection"
            let code = reasonCode == .notAuthorized ? WaybillError.Code.unauthorized : .rejected
            call.fail(WaybillError(code, message, restating: cause))
        }
    }
}

extension WaybillError {
    /// The error of a call that its connection's end leaves without an answer.
    fileprivate static let unanswered = WaybillError(
        .connectionLost,
        "the connection ended before the server answered"
    )
}
