package import WireCore

/// The receiver's side of QoS 1 and 2 (MQTT 5, 4.3), the same for client and server.
///
/// | state of a QoS 2 identifier | PUBLISH | taken by the application | PUBREL |
/// | --- | --- | --- | --- |
/// | none | delivered | | PUBCOMP, not found |
/// | delivered | ignored: PUBREC will follow | PUBREC, stored before with a store | PUBCOMP |
/// | storing | ignored: PUBREC will follow | | PUBCOMP |
/// | acknowledged | PUBREC again | | PUBCOMP |
/// | carried (not taken) | waits for the application | noted | PUBCOMP |
/// | carried (taken since) | PUBREC | | PUBCOMP |
/// | carried (in doubt) | without DUP: as new; with DUP as above | as above | PUBCOMP |
package struct MQTTReceiver: Sendable {
    /// What to do with an arrived message.
    package enum Arrival: Sendable {
        /// Deliver it to the application, with a receipt if it must be acknowledged.
        case deliver(MQTTDeliveryReceipt?)
        /// Deliver it, too. It shows that the server has lost the session that was in doubt, and with it the exchanges
        /// that these calls wait for.
        case deliverAfterLoss(MQTTDeliveryReceipt, [any MQTTCall])
        /// The message was delivered before.
        case repetition
    }

    /// The progress of a QoS 2 message between PUBLISH and PUBREL.
    private enum Progress {
        /// PUBREC will be sent in its turn.
        case delivered
        /// Taken; PUBREC is sent when the identifier is stored.
        case storing
        /// PUBREC was sent.
        case acknowledged
        /// Delivered on an earlier connection with a receipt and without PUBREC; the reason code is the application's
        /// answer since.
        ///
        /// The server will send it again.
        case carried(serial: UInt64, MQTTReasonCode?)
    }

    private struct Exchange {
        var progress: Progress
        /// Whether it counts towards the Receive Maximum.
        var isCounted: Bool
        /// Whether the server may have lost it; until it goes on with it, or shows that it has lost the session.
        var isInDoubt = false
    }

    /// The meaning of a receipt from an earlier connection.
    private enum EarlierReceipt {
        /// An identifier that the server has not repeated yet.
        case identifier(UInt16)
        /// The turn of the repetition on this connection.
        case turn(UInt64)
    }

    /// The number of QoS 2 messages that may be incomplete (MQTT 5, 3.3.4-9): a server's Receive Maximum.
    ///
    /// Counting starts again with each connection (4.9); repetitions do not count. The server side acknowledges QoS 1
    /// at once, so such messages never wait there.
    ///
    /// A client enforces no maximum of its own. Mosquitto exceeds it each time that an app lags, and ending the
    /// connection would lose the messages of a clean session. The number of packet identifiers is the bound for a
    /// client.
    var maximum = Int(UInt16.max)
    /// Whether the identifiers of taken messages are stored before PUBREC is sent.
    var isStored = false
    /// The calls that wait for the end of an exchange.
    private(set) var completions = MQTTCompletions()
    /// The calls whose exchanges are over.
    private var completed: [any MQTTCall] = []
    /// The steps to be stored, in order.
    private var steps: [MQTTStorageStep] = []
    /// The PUBRECs that wait for the store, and those behind them.
    private var storing = MQTTAcknowledgementQueue()
    private var publishAcknowledgements = MQTTAcknowledgementQueue()
    private var receivedAcknowledgements = MQTTAcknowledgementQueue()
    /// QoS 2 messages between PUBLISH and PUBREL, by identifier.
    private var exactlyOnce: [UInt16: Exchange] = [:]
    /// The number of entries that count.
    private var countedExactlyOnce = 0
    /// QoS 2 receipts from earlier connections that were not returned, by serial number.
    private var earlierReceipts: [UInt64: EarlierReceipt] = [:]
    /// The texts of answers from before this connection.
    private var carried = MQTTCarriedExplanations()

    /// QoS 1 messages of earlier connections that the server sends again.
    private(set) var repeatedSerials = MQTTRepeatedSerials()

    package init() {}

    /// Handles PUBLISH.
    ///
    /// - Throws: `receiveMaximumExceeded` (MQTT 5, 3.3.4-9).
    package mutating func receive(
        _ qos: MQTTQoS,
        _ identifier: UInt16,
        isDuplicate: Bool,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTViolation) -> Arrival {
        switch qos {
        case .atMostOnce:
            return .deliver(nil)
        case .atLeastOnce:
            guard publishAcknowledgements.count < Int(UInt16.max) else {
                throw .receiveMaximumExceeded
            }
            let serial = publishAcknowledgements.append(identifier)
            return .deliver(MQTTDeliveryReceipt(qos: .atLeastOnce, serial: serial))
        case .exactlyOnce:
            guard let exchange = exactlyOnce[identifier] else {
                return .deliver(try begin(identifier, isDuplicate: isDuplicate))
            }
            guard isDuplicate || !exchange.isInDoubt else {
                let lost = loseDoubtful()
                return .deliverAfterLoss(try begin(identifier, isDuplicate: false), lost)
            }
            receiveAgain(identifier, exchange, to: &writer)
            return .repetition
        }
    }

    /// Begins a QoS 2 exchange.
    private mutating func begin(
        _ identifier: UInt16,
        isDuplicate: Bool
    ) throws(MQTTViolation) -> MQTTDeliveryReceipt {
        guard isDuplicate || countedExactlyOnce < maximum else { throw .receiveMaximumExceeded }
        let isCounted = !isDuplicate
        exactlyOnce[identifier] = Exchange(progress: .delivered, isCounted: isCounted)
        if isCounted { countedExactlyOnce += 1 }
        let serial = receivedAcknowledgements.append(identifier)
        return MQTTDeliveryReceipt(qos: .exactlyOnce, serial: serial)
    }

    /// Ends the exchanges in doubt, because a PUBLISH has come for one of them without DUP.
    ///
    /// A server that sends a message again sets DUP (MQTT 5, 3.3.1-1). So the server has lost that session.
    ///
    /// - Returns: The calls that waited for the end of such an exchange.
    private mutating func loseDoubtful() -> [any MQTTCall] {
        var lost: [any MQTTCall] = []
        for (identifier, exchange) in exactlyOnce where exchange.isInDoubt {
            // One that the app has answered has no receipt left.
            if case .carried(let serial, nil) = exchange.progress { earlierReceipts[serial] = nil }
            if let call = completions.take(identifier) { lost.append(call) }
            _ = end(identifier)
            if isStored { steps.append(.superseded(identifier)) }
        }
        return lost
    }

    /// Handles the repetition of a QoS 2 message: it is acknowledged again, not delivered again (MQTT 5, 4.3.3-10).
    private mutating func receiveAgain(
        _ identifier: UInt16,
        _ exchange: Exchange,
        to writer: inout MQTTPacketWriter
    ) {
        var exchange = exchange
        exchange.isInDoubt = false
        switch exchange.progress {
        case .delivered, .storing: break
        case .acknowledged: sendPubrec(identifier, .success, to: &writer)
        case .carried(let serial, let reasonCode):
            exchange.progress = .delivered
            let turn = receivedAcknowledgements.append(identifier)
            if let reasonCode {
                let explanation = carried.take(identifier)
                receivedAcknowledgements.settle(turn, reasonCode, explaining: explanation)
            } else {
                earlierReceipts[serial] = .turn(turn)
            }
        }
        exactlyOnce[identifier] = exchange
        sendReceived(to: &writer)
    }

    /// Acknowledges a taken or refused message when its turn comes.
    ///
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode,
        to writer: inout MQTTPacketWriter
    ) -> Bool {
        guard settle(receipt, reasonCode) else { return false }
        sendAcknowledgements(receipt.qos, to: &writer)
        return true
    }

    /// Acknowledges a message as ``acknowledge(_:_:to:)`` does, with the texts of an answer.
    mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        to writer: inout MQTTPacketWriter
    ) {
        guard settle(receipt, answer.reasonCode, explaining: answer.properties) else { return }
        sendAcknowledgements(receipt.qos, to: &writer)
    }

    /// Sends the acknowledgements whose turn has come.
    private mutating func sendAcknowledgements(
        _ qos: MQTTQoS,
        to writer: inout MQTTPacketWriter
    ) {
        switch qos {
        case .atMostOnce: break
        case .atLeastOnce:
            while let (identifier, reasonCode) = publishAcknowledgements.next() {
                let explanation = publishAcknowledgements.takeExplanation()
                answer(.puback, identifier, reasonCode, explanation, to: &writer)
            }
        case .exactlyOnce: sendReceived(to: &writer)
        }
    }

    /// Notes that a message was taken, or refused with a reason, and writes nothing.
    ///
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    package mutating func settle(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode,
        explaining properties: MQTTProperties = MQTTProperties()
    ) -> Bool {
        switch receipt.qos {
        case .atMostOnce: break
        case .atLeastOnce:
            guard receipt.serial >= publishAcknowledgements.firstSerial else {
                return !repeatedSerials.contains(receipt.serial)
            }
            publishAcknowledgements.settle(receipt.serial, reasonCode, explaining: properties)
        case .exactlyOnce: settleExactlyOnce(receipt.serial, reasonCode, properties)
        }
        return true
    }

    private mutating func settleExactlyOnce(
        _ serial: UInt64,
        _ reasonCode: MQTTReasonCode,
        _ properties: MQTTProperties
    ) {
        guard !earlierReceipts.isEmpty, let earlier = earlierReceipts.removeValue(forKey: serial)
        else {
            return receivedAcknowledgements.settle(serial, reasonCode, explaining: properties)
        }
        switch earlier {
        case .turn(let turn):
            receivedAcknowledgements.settle(turn, reasonCode, explaining: properties)
        case .identifier(let identifier):
            guard case .carried(serial, nil)? = exactlyOnce[identifier]?.progress else { return }
            exactlyOnce[identifier]?.progress = .carried(serial: serial, reasonCode)
            carried.keep(properties, for: identifier)
            if isStored, !reasonCode.isFailure { steps.append(.taken(identifier)) }
        }
    }

    /// Sends the PUBRECs whose turn has come.
    private mutating func sendReceived(to writer: inout MQTTPacketWriter) {
        while let (identifier, reasonCode) = receivedAcknowledgements.next() {
            let explanation = receivedAcknowledgements.takeExplanation()
            if reasonCode.isFailure {
                // The exchange of a refused message has ended: its identifier can be used again (MQTT 5, 4.3.3-9).
                _ = end(identifier)
            } else if isStored {
                exactlyOnce[identifier]?.progress = .storing
                storing.explain(storing.append(identifier), explanation)
                steps.append(.taken(identifier))
                continue
            } else {
                exactlyOnce[identifier]?.progress = .acknowledged
            }
            sendPubrec(identifier, reasonCode, explanation, to: &writer)
        }
    }

    /// Sends a PUBREC, behind those that wait for the store (MQTT 5, 4.6.0-3).
    private mutating func sendPubrec(
        _ identifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        _ explanation: MQTTProperties = MQTTProperties(),
        to writer: inout MQTTPacketWriter
    ) {
        guard storing.count > 0 else {
            return answer(.pubrec, identifier, reasonCode, explanation, to: &writer)
        }
        storing.settle(storing.append(identifier), reasonCode, explaining: explanation)
    }

    /// Handles PUBREL; an unknown identifier is answered, too, because the sender would otherwise repeat it forever.
    package mutating func receivePubrel(
        _ pubrel: MQTTAcknowledgement,
        to writer: inout MQTTPacketWriter
    ) {
        let isKnown = end(pubrel.packetIdentifier)
        let reasonCode = isKnown ? MQTTReasonCode.success : .packetIdentifierNotFound
        answer(.pubcomp, pubrel.packetIdentifier, reasonCode, to: &writer)
    }

    /// Ends a QoS 2 exchange.
    ///
    /// - Returns: Whether there was one.
    private mutating func end(_ identifier: UInt16) -> Bool {
        guard let exchange = exactlyOnce.removeValue(forKey: identifier) else { return false }
        _ = carried.take(identifier)
        if exchange.isCounted { countedExactlyOnce -= 1 }
        if let call = completions.take(identifier) { completed.append(call) }
        return true
    }

    // MARK: Calls that wait for the end of an exchange

    /// Lets a call wait until the exchange of a message is over.
    ///
    /// - Parameters:
    ///   - call: The call.
    ///   - identifier: The packet identifier of the message, from ``packetIdentifier(of:)`` before its acknowledgement.
    ///   - deadline: The time limit of the call.
    /// - Returns: False if the exchange is over already.
    package mutating func await(
        _ call: any MQTTCall,
        _ identifier: UInt16,
        deadline: WireInstant
    ) -> Bool {
        guard exactlyOnce[identifier] != nil else { return false }
        completions.insert(call, identifier, deadline: deadline)
        return true
    }

    /// The packet identifier of a QoS 2 message that is not acknowledged yet; nil if its session is lost.
    func packetIdentifier(of receipt: MQTTDeliveryReceipt) -> UInt16? {
        switch earlierReceipts[receipt.serial] {
        case .identifier(let identifier): identifier
        case .turn(let turn): receivedAcknowledgements.packetIdentifier(of: turn)
        case nil: receivedAcknowledgements.packetIdentifier(of: receipt.serial)
        }
    }

    /// Takes the calls whose exchanges are over.
    mutating func takeCompleted() -> [any MQTTCall] {
        guard !completed.isEmpty else { return [] }
        defer { completed = [] }
        return completed
    }

    /// Takes the calls whose time limit has passed.
    mutating func takeExpired(at now: WireInstant) -> [any MQTTCall] {
        completions.takeExpired(at: now)
    }

    /// Withdraws a call.
    mutating func cancel(_ call: any MQTTCall) { completions.cancel(call) }

    // MARK: Stored identifiers

    /// Adds the identifier of a message that an earlier process has taken.
    ///
    /// It is in doubt, because that process may have ended without knowing what became of the session.
    mutating func restore(_ identifier: UInt16) {
        exactlyOnce[identifier] = Exchange(progress: .acknowledged, isCounted: false)
        exactlyOnce[identifier]?.isInDoubt = true
    }

    /// Takes the steps to be stored.
    mutating func takeSteps() -> [MQTTStorageStep] {
        guard !steps.isEmpty else { return [] }
        defer { steps = [] }
        return steps
    }

    /// Whether the identifier of a PUBREL is stored, and has to be removed before PUBCOMP is sent.
    func isStored(_ pubrel: MQTTAcknowledgement) -> Bool {
        isStored && exactlyOnce[pubrel.packetIdentifier] != nil
    }

    /// Sends the PUBREC of an identifier that is stored now, when its turn comes.
    mutating func noteStored(_ identifier: UInt16, to writer: inout MQTTPacketWriter) {
        if case .storing? = exactlyOnce[identifier]?.progress {
            exactlyOnce[identifier]?.progress = .acknowledged
        }
        storing.settle(awaited: identifier, .success)
        while let (identifier, reasonCode) = storing.next() {
            let explanation = storing.takeExplanation()
            // Not if PUBREL has arrived meanwhile.
            guard reasonCode.isFailure || exactlyOnce[identifier] != nil else { continue }
            answer(.pubrec, identifier, reasonCode, explanation, to: &writer)
        }
    }

    // MARK: Between connections

    /// The smallest number of unacknowledged messages at which a server may hold back others: RabbitMQ's window is 10.
    private static let smallestServerWindow = 10

    /// Whether the server may hold back messages until others are acknowledged.
    var hasBacklog: Bool {
        publishAcknowledgements.count + receivedAcknowledgements.count >= Self.smallestServerWindow
    }

    /// Whether no QoS 2 message is incomplete.
    package var isIdle: Bool { exactlyOnce.isEmpty }

    /// Ends the state of the connection: QoS 1 receipts, turns and counts.
    ///
    /// A QoS 2 receipt stays valid for its message as long as the session lasts.
    package mutating func suspend() {
        _ = publishAcknowledgements.takeAll()
        var serials: [UInt64: UInt64] = [:]
        for (serial, receipt) in earlierReceipts {
            guard case .turn(let turn) = receipt else { continue }
            serials[turn] = serial
            earlierReceipts[serial] = nil
        }
        // Of several messages with one identifier, the latest counts.
        for (turn, owed, explanation) in receivedAcknowledgements.takeAll().reversed() {
            let identifier = owed.packetIdentifier
            guard case .delivered? = exactlyOnce[identifier]?.progress else { continue }
            let serial = serials[turn] ?? turn
            exactlyOnce[identifier]?.progress = .carried(serial: serial, owed.reasonCode)
            carried.keep(explanation, for: identifier)
            if owed.reasonCode == nil { earlierReceipts[serial] = .identifier(identifier) }
        }
        for (identifier, exchange) in exactlyOnce {
            exactlyOnce[identifier]?.isCounted = false
            // The next connection repeats the step. No receipt is left, so the serial number has no meaning.
            guard case .storing = exchange.progress else { continue }
            exactlyOnce[identifier]?.progress = .carried(serial: 0, .success)
        }
        for (_, owed, explanation) in storing.takeAll() {
            guard case .carried? = exactlyOnce[owed.packetIdentifier]?.progress else { continue }
            carried.keep(explanation, for: owed.packetIdentifier)
        }
        countedExactlyOnce = 0
    }

    /// Forgets messages that the app can no longer acknowledge, so that their repetitions are delivered.
    ///
    /// Called between connections.
    mutating func abandon(_ receipts: [MQTTDeliveryReceipt]) {
        for receipt in receipts where receipt.qos == .exactlyOnce {
            guard case .identifier(let identifier)? = earlierReceipts[receipt.serial] else {
                continue
            }
            earlierReceipts[receipt.serial] = nil
            _ = end(identifier)
        }
    }

    /// Notes that the server may have lost the exchanges that are under way now; see ``MQTTSessionState/noteDoubt()``.
    mutating func noteDoubt() {
        for identifier in exactlyOnce.keys { exactlyOnce[identifier]?.isInDoubt = true }
    }

    /// Notes that the server has kept the session.
    mutating func resumeSession() {
        repeatedSerials.resumeSession(before: publishAcknowledgements.nextSerial)
    }

    /// Clears everything except the used serial numbers, so that old receipts have no effect.
    ///
    /// - Returns: The calls that waited for the end of an exchange.
    package mutating func loseSession() -> [any MQTTCall] {
        _ = publishAcknowledgements.takeAll()
        repeatedSerials.loseSession(before: publishAcknowledgements.nextSerial)
        _ = receivedAcknowledgements.takeAll()
        _ = storing.takeAll()
        // In the next session another message may have such an identifier.
        steps = []
        exactlyOnce = [:]
        countedExactlyOnce = 0
        earlierReceipts = [:]
        carried = MQTTCarriedExplanations()
        return completions.takeAll()
    }
}
