import WireCore

/// The options that a provider leaves out of requests, learned from the errors of its transport.
final class OmittedOptions: Sendable {
    /// An option that is left out of a command.
    struct Omission: Hashable, Sendable {
        var command: EntryCommand.Kind
        var option: UnsupportedOption
        /// For the quality of service: the highest supported one.
        var supportedQoS = QoS.atMostOnce
    }

    let policy: UnsupportedPolicy
    private let learned = Locked<Set<Omission>>([])

    init(_ policy: UnsupportedPolicy) {
        self.policy = policy
    }

    /// Leaves out of a request the options that its transport is known not to support.
    func apply(to request: inout Request, _ memory: RequestMemory) {
        for omission in learned.withLock({ $0 })
        where omission.command == request.command.kind {
            request.omit(omission)
        }
        for omission in memory.omissions { request.omit(omission) }
    }

    /// Learns from an error which option to leave out.
    ///
    /// - Parameters:
    ///   - error: The error of the failed request.
    ///   - request: The entry's request.
    ///   - memory: The memory of the request.
    /// - Returns: Whether to perform the request again, without the option.
    func learn(from error: WaybillError, _ request: Request, _ memory: RequestMemory) -> Bool {
        guard error.code == .unsupported, let option = error.unsupportedOption,
            policy.ignored.contains(option),
            // The error may belong to a connection that was opened for the request.
            error.command == nil || error.command == request.command.name
        else { return false }
        let omission = Omission(
            command: request.command.kind,
            option: option,
            supportedQoS: error.supportedQoS ?? .atMostOnce
        )
        // A repeated `unsupported` for an option that was already left out is final; otherwise the loop would not end.
        guard memory.omit(omission) else { return false }
        if !error.isLimitOfServer { learned.withLock { _ = $0.insert(omission) } }
        return true
    }
}

extension Request {
    /// Removes an option from the request.
    mutating func omit(_ omission: OmittedOptions.Omission) {
        switch omission.option {
        case .headers: headers = [:]
        case .contentType: contentType = nil
        default: command.omit(omission)
        }
    }
}

extension EntryCommand {
    fileprivate mutating func omit(_ omission: OmittedOptions.Omission) {
        switch self {
        case .connect(var options):
            options.omit(omission.option)
            self = .connect(options)
        case .send(var options):
            options.omit(omission)
            self = .send(options)
        case .subscribe(var options):
            options.omit(omission)
            self = .subscribe(options)
        case .unsubscribe(var options):
            if omission.option == .shareName { options.shareName = nil }
            self = .unsubscribe(options)
        case .ack(let id, var options):
            options.omit(omission.option)
            self = .ack(id, options)
        case .nack(let id, var options):
            options.omit(omission.option)
            self = .nack(id, options)
        case .disconnect(var options):
            options.omit(omission.option)
            self = .disconnect(options)
        default: break
        }
    }
}

extension AcknowledgementOptions {
    fileprivate mutating func omit(_ option: UnsupportedOption) {
        switch option {
        case .acknowledgementReason: (reasonCode, reason) = (nil, nil)
        case .awaitsCompletion: awaitsCompletion = false
        default: break
        }
    }
}

extension ConnectOptions {
    fileprivate mutating func omit(_ option: UnsupportedOption) {
        switch option {
        case .clientIdentifier: clientIdentifier = nil
        case .credentials: (userName, password) = (nil, nil)
        case .will: will = nil
        case .willDelay: will?.delay = nil
        case .willProperties: will?.removeProperties()
        case .cleanStart: cleanStart = nil
        case .sessionExpiry: sessionExpiry = nil
        case .keepAlive: keepAlive = nil
        case .upgradeHeaders: upgradeHeaders = [:]
        default: break
        }
    }
}

extension SendOptions {
    fileprivate mutating func omit(_ omission: OmittedOptions.Omission) {
        switch omission.option {
        case .qos: qos = min(qos, omission.supportedQoS)
        case .retain: retain = false
        case .expiry: expiry = nil
        case .receipt: asksForReceipt = nil
        case .method: method = nil
        case .responseTopic: responseTopic = nil
        case .correlationData: correlationData = nil
        case .isText: isText = nil
        case .sentOnce: isSentOnce = false
        case .waitsForConnection: waitsForConnection = nil
        default: break
        }
    }
}

extension SubscribeOptions {
    fileprivate mutating func omit(_ omission: OmittedOptions.Omission) {
        switch omission.option {
        case .qos: qos = min(qos, omission.supportedQoS)
        case .noLocal: noLocal = false
        case .retainAsPublished: retainAsPublished = false
        case .retainHandling: retainHandling = .send
        case .shareName: shareName = nil
        case .subscriptionIdentifier: subscriptionIdentifier = .automatic
        case .ackMode: ackMode = nil
        case .receipt: asksForReceipt = nil
        case .method: method = nil
        case .eventTypes: eventTypes = nil
        case .lastEventID: lastEventID = nil
        default: break
        }
    }
}

extension DisconnectOptions {
    fileprivate mutating func omit(_ option: UnsupportedOption) {
        switch option {
        case .drainTimeout: drainTimeout = nil
        case .closeTimeout: timeout = nil
        case .disconnectReason: (publishesWill, reasonCode, reason) = (false, nil, nil)
        case .sessionExpiry: sessionExpiry = nil
        default: break
        }
    }
}
