package import WireCore

/// The sender's side of QoS 1 and 2 (MQTT 5, 4.3 and 4.9), the same for client and server.
///
/// | exchange | PUBACK | PUBREC | PUBCOMP |
/// | --- | --- | --- | --- |
/// | QoS 1 | ends it | not its answer | not its answer |
/// | QoS 2, PUBLISH sent | not its answer | PUBREL, or ends it when refused | not its answer |
/// | QoS 2, PUBREL sent | not its answer | PUBREL again, nothing when refused | ends it |
/// | QoS 1, rejected | ends it | not its answer | not its answer |
/// | QoS 2, rejected | not its answer | PUBREL, or ends it when refused | not its answer |
package struct MQTTPublisher: Sendable {
    /// The end of an exchange.
    package struct Outcome: Sendable {
        package let call: (any MQTTCall)?
        package let acknowledgement: MQTTAcknowledgement
    }

    /// The exchanges that wait for an acknowledgement, including SUBSCRIBE and UNSUBSCRIBE.
    package var inflight: MQTTInflight
    /// The number of messages that may be in flight.
    package var window: Int
    /// Whether the server ends the connection because of a message.
    package internal(set) var suspicion = ReplaySuspicion()
    /// Messages that wait for room in the window.
    package internal(set) var queue = MQTTOutgoingQueue()
    var messagesUnderWay = 0
    /// The identifiers of messages from an earlier connection that wait to be resent, the first one last.
    var repetitions: [UInt16] = []
    /// Messages that were lost with the server's session, and whose calls were not told yet.
    var lost: [MQTTInflight.Entry] = []
    /// The PUBRELs that wait for the store, and those behind them.
    var storing = MQTTAcknowledgementQueue()
    /// The packets whose time limits begin when they are given to the socket.
    var departures = MQTTDepartures()
    /// A lower bound of the calls' time limits; nil if no call waits.
    package internal(set) var earliestDeadline: WireInstant?

    package init(window: Int, reservesIdentifiers: Bool = false) {
        self.window = window
        inflight = MQTTInflight(reservesIdentifiers: reservesIdentifiers)
    }

    /// Sends a message, or queues it when the window is full.
    ///
    /// - Throws: `MQTTSendError`; the message is discarded then.
    package mutating func submit(
        _ message: MQTTOutgoingMessage,
        call: (any MQTTCall)?,
        deadline: WireInstant,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        // Without a free identifier the message waits for one, as for room in the window.
        if queue.isEmpty, hasRoom(for: message.suspicion),
            inflight.canBegin(as: message.reservedIdentifier)
        {
            try start(message, call: call, deadline: deadline, to: &writer)
        } else {
            // Refused now rather than when its turn comes.
            try writer.check(message)
            queue.append(.init(message: message, call: call, deadline: deadline))
        }
        if call != nil { noteDeadline(deadline) }
    }

    /// Whether a message can be sent now; a suspect is sent alone.
    private func hasRoom(for suspicion: ReplaySuspicion.Record) -> Bool {
        guard messagesUnderWay < window, !self.suspicion.isIsolating else { return false }
        return messagesUnderWay == 0 || !suspicion.isIsolated
    }

    /// Notes that a PUBLISH was written.
    mutating func noteWritten(_ message: MQTTOutgoingMessage, _ identifier: UInt16) {
        if message.isSentOnce {
            suspicion.noteOther()
        } else {
            suspicion.noteWritten(
                UInt32(identifier),
                message.suspicion,
                isOldest: messagesUnderWay == 0
            )
        }
        messagesUnderWay += 1
        if message.lastsUntil != nil { departures.noteWritten(identifier) }
    }

    private mutating func start(
        _ message: MQTTOutgoingMessage,
        call: (any MQTTCall)?,
        deadline: WireInstant,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        let exchange: MQTTInflight.Exchange =
            message.publish.qos == .exactlyOnce
            ? .publishExactlyOnce(message) : .publishAtLeastOnce(message)
        let begun = inflight.begin(
            exchange,
            as: message.reservedIdentifier,
            call: call,
            deadline: deadline
        )
        guard let identifier = begun else { throw .noPacketIdentifierLeft }
        do {
            let packet = message.packet(as: identifier, at: writer.now)
            try Self.write(packet, message.payload, to: &writer)
        } catch {
            inflight.end(identifier)
            throw error
        }
        noteWritten(message, identifier)
    }

    /// Opens the existential payload for the generic writer.
    static func write(
        _ publish: MQTTPublish,
        _ payload: some WireBytes,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        try writer.write(publish, payload: payload)
    }

    /// Handles PUBACK and PUBCOMP.
    ///
    /// After a PUBREL was resent in a resumed session, the peer may already have completed the exchange. PUBCOMP 0x92
    /// is then no error (MQTT 5, 3.7.2.1).
    ///
    /// - Returns: The exchange that has ended; nil for an unknown identifier, which is ignored.
    package mutating func receive(
        _ acknowledgement: MQTTAcknowledgement,
        isComplete: Bool,
        to writer: inout MQTTPacketWriter
    ) -> Outcome? {
        switch inflight.kind(acknowledgement.packetIdentifier) {
        case .publishAtLeastOnce where !isComplete, .rejectedAtLeastOnce where !isComplete:
            end(acknowledgement, to: &writer)
        case .release where isComplete: end(completion(acknowledgement), to: &writer)
        default: nil
        }
    }

    private func completion(_ pubcomp: MQTTAcknowledgement) -> MQTTAcknowledgement {
        let identifier = pubcomp.packetIdentifier
        guard pubcomp.reasonCode == .packetIdentifierNotFound,
            inflight.isOfThisConnection(identifier) == false
        else { return pubcomp }
        return MQTTAcknowledgement(packetIdentifier: identifier)
    }

    /// Handles PUBREC: sends PUBREL unless the message was refused (MQTT 5, 4.3.3-4).
    ///
    /// - Returns: The exchange, if it has ended.
    package mutating func receivePubrec(
        _ pubrec: MQTTAcknowledgement,
        to writer: inout MQTTPacketWriter
    ) -> Outcome? {
        let identifier = pubrec.packetIdentifier
        var reasonCode = MQTTReasonCode.success
        switch inflight.kind(identifier) {
        case .publishExactlyOnce where pubrec.reasonCode.isFailure,
            .rejectedExactlyOnce where pubrec.reasonCode.isFailure:
            return end(pubrec, to: &writer)
        case _ where pubrec.reasonCode.isFailure: return nil
        case .publishExactlyOnce, .rejectedExactlyOnce: inflight.release(identifier)
        case .release: break
        default: reasonCode = .packetIdentifierNotFound
        }
        sendPubrel(identifier, reasonCode, to: &writer)
        return nil
    }

    private mutating func end(
        _ acknowledgement: MQTTAcknowledgement,
        to writer: inout MQTTPacketWriter
    ) -> Outcome {
        let entry = inflight.end(acknowledgement.packetIdentifier)
        if entry?.isOfThisConnection == true { messagesUnderWay -= 1 }
        sendWaiting(to: &writer)
        return Outcome(call: entry?.call, acknowledgement: acknowledgement)
    }

    package mutating func endRequest(
        _ packetIdentifier: UInt16,
        to writer: inout MQTTPacketWriter
    ) -> MQTTInflight.Entry? {
        let entry = inflight.end(packetIdentifier)
        // A message may have waited for the identifier.
        sendWaiting(to: &writer)
        return entry
    }

    /// Sends waiting messages as long as the window has room: first those to resend, in their old order.
    mutating func sendWaiting(to writer: inout MQTTPacketWriter) {
        while messagesUnderWay < window {
            if let identifier = repetitions.last {
                let message = inflight.entry(identifier)?.message
                guard hasRoom(for: message?.suspicion ?? .clear) else { return }
                repetitions.removeLast()
                sendAgain(identifier, to: &writer)
            } else {
                // The identifier of a stored message may still belong to a much earlier one.
                guard hasRoom(for: queue.firstSuspicion),
                    inflight.canBegin(as: queue.firstReservedIdentifier),
                    let next = queue.popFirst()
                else { return }
                // Checked when it was queued, or when the session was resumed.
                try? start(next.message, call: next.call, deadline: next.deadline, to: &writer)
            }
        }
    }

    // MARK: Callers

    /// Notes the time limit of a call.
    package mutating func noteDeadline(_ deadline: WireInstant) {
        guard let earliest = earliestDeadline, earliest <= deadline else {
            earliestDeadline = deadline
            return
        }
    }

    /// Takes the calls whose time limit has passed; messages that were not sent are withdrawn.
    package mutating func takeExpired(at now: WireInstant) -> [any MQTTCall] {
        guard let earliest = earliestDeadline, earliest <= now else { return [] }
        let (expired, next) = inflight.takeExpired(at: now)
        let (unsent, nextUnsent) = queue.takeExpired(at: now)
        let tooLate = lost.filter { $0.deadline <= now }.compactMap(\.call)
        lost.removeAll { $0.deadline <= now }
        earliestDeadline =
            ([next, nextUnsent] + lost.map(\.callerDeadline)).compactMap { $0 }.min()
        return tooLate + expired + unsent
    }

    /// Withdraws a call: a waiting message is not sent; an exchange that has begun continues without the call.
    package mutating func cancel(_ call: any MQTTCall) {
        guard !queue.withdraw(call) else { return }
        inflight.forget(call)
        lost.removeAll { $0.call === call }
    }

    /// The waiting calls, in the order of sending.
    package var calls: [any MQTTCall] {
        lost.compactMap(\.call) + inflight.entries.compactMap(\.call) + queue.calls
    }
}

extension MQTTAcknowledgement {
    /// Makes an answer in the form of the version: 3.1.1 has no reasons.
    package static func answer(
        _ packetIdentifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        version: MQTTVersion
    ) -> MQTTAcknowledgement {
        MQTTAcknowledgement(
            packetIdentifier: packetIdentifier,
            reasonCode: version == .v5 ? reasonCode : .success
        )
    }
}
