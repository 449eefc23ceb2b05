import WireCore

/// The options that a provider leaves out of requests, learned from the errors of its transport.
final class OmittedOptions: Sendable {
    /// An option that is left out of a command.
    struct Omission: Hashable, Sendable {
        var command: EntryCommand.Kind
        var option: OptionName
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

    /// Whether an option is left out of a request.
    func leavesOut(_ option: OptionName, of command: EntryCommand.Kind, _ memory: RequestMemory)
        -> Bool
    {
        let isMeant = { (omission: Omission) in
            omission.option === option && omission.command == command
        }
        return learned.withLock { $0.contains(where: isMeant) }
            || memory.omissions.contains(where: isMeant)
    }

    /// Learns from an error which option to leave out.
    ///
    /// - Parameters:
    ///   - error: The error of the failed request.
    ///   - request: The entry's request.
    ///   - memory: The memory of the request.
    /// - Returns: Whether to perform the request again, without the option.
    func learn(from error: WaybillError, _ request: Request, _ memory: RequestMemory) -> Bool {
        guard error.code == .unsupported, let option = error.option,
            policy.ignored.contains(option), option.canBeOmitted,
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
        case .qos:
            command.qos = min(command.qos, omission.supportedQoS)
            guard hasSeveralTopics else { break }
            topics = topics.map { topic in
                EntryTopic(topic.name, qos: topic.qos.map { min($0, omission.supportedQoS) })
            }
        default: break
        }
        command.omit(omission.option)
    }
}
