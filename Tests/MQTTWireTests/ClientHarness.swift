import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A pending call, identified by its number.
final class Call: MQTTCall {
    let number: Int

    init(_ number: Int) {
        self.number = number
    }
}

/// A client core under test. A test gives it packets, and reads the packets that it sends and a log of its events.
struct ClientHarness {
    var client: MQTTClientConnection
    var now = WireInstant.zero
    private var buffer = ReceiveBuffer(capacity: 64)
    private var outbound = ReceiveBuffer(capacity: 64)
    private var decoder: MQTTPacketDecoder

    /// The events since the last call of `told()`, in words.
    var log: [String] = []
    /// The topics of the delivered messages, in order.
    var topics: [String] = []
    /// The steps that must be stored, in order.
    var steps: [MQTTStorageStep] = []
    /// The receipts of the delivered messages, in order.
    var receipts: [MQTTDeliveryReceipt] = []

    let version: MQTTVersion

    init(
        _ version: MQTTVersion = .v5,
        connect packet: MQTTConnect? = nil,
        connack: MQTTConnackPacket? = MQTTConnackPacket(),
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) throws {
        self.version = version
        var configuration = MQTTClientConfiguration()
        configuration.version = version
        change(&configuration)
        client = MQTTClientConnection(configuration: configuration)
        decoder = MQTTPacketDecoder(version: version, role: .server, maximumPacketSize: 1 << 24)
        guard let connack else { return }
        let request = packet ?? MQTTConnect(version: version, clientIdentifier: "c")
        try client.connect(request, hasSessionState: !request.cleanStart, at: now)
        _ = sent
        receive(.connack(connack))
        log = []
    }

    // MARK: Reconnecting

    /// Ends the connection and returns the session state that outlives it.
    mutating func cut() -> MQTTSessionState {
        endOfStream()
        _ = client.outbound.takeBytes()
        return client.takeSessionState()
    }

    /// Makes a new connection with the session state. Receives CONNACK unless it is nil.
    mutating func connect(
        resuming session: MQTTSessionState,
        connack: MQTTConnackPacket?,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = client.configuration
        change(&configuration)
        client = MQTTClientConnection(configuration: configuration)
        buffer = ReceiveBuffer(capacity: 64)
        outbound = ReceiveBuffer(capacity: 64)
        decoder = MQTTPacketDecoder(version: version, role: .server, maximumPacketSize: 1 << 24)
        let request = MQTTConnect(version: version, clientIdentifier: "c", cleanStart: false)
        try client.connect(request, hasSessionState: true, resuming: session, at: now)
        #expect(sent == [.connect(request)], "nothing else before CONNACK")
        guard let connack else { return }
        receive(.connack(connack))
        #expect(sent == [], "nothing before it is asked for")
        log.removeAll { $0 == "connected" }
    }

    /// Cuts the connection and makes the next one.
    mutating func reconnect(
        sessionPresent: Bool,
        receiveMaximum: UInt16? = nil,
        _ change: (inout MQTTConnackPacket) -> Void = { _ in }
    ) throws {
        var connack = MQTTConnackPacket(sessionPresent: sessionPresent)
        connack.properties.receiveMaximum = receiveMaximum
        change(&connack)
        try connect(resuming: cut(), connack: connack)
        log.removeAll { $0.hasPrefix("closed") }
    }

    /// Resumes the session and logs the calls that the core drops.
    mutating func resume() {
        for dropped in client.resumeSession(at: now) {
            let caller = dropped.call.map { "\(number($0))" } ?? "a message without a call"
            switch dropped.cause {
            case .sessionLost: log.append("lost \(caller)")
            case .endedConnections(let count): log.append("rejected \(caller) after \(count)")
            case .refused(let error):
                log.append(
                    "refused \(caller) \("\(error)".replacing(/MQTTWire\.\w+\./, with: "."))"
                )
            }
        }
        note()
    }

    /// Takes the packets that the core wants sent.
    var sent: [MQTTPacket] {
        mutating get {
            outbound.append(client.outbound.takeBytes())
            var packets: [MQTTPacket] = []
            while let packet = try? decoder.next(&outbound) { packets.append(packet) }
            return packets
        }
    }

    mutating func receive(_ packets: MQTTPacket...) {
        var writer = ByteWriter()
        for packet in packets {
            do {
                try packet.encode(into: &writer, version: version)
            } catch {
                Issue.record("\(error) for \(packet)")
            }
        }
        receive(writer.bytes)
    }

    mutating func receive(_ bytes: [UInt8]) {
        buffer.append(bytes)
        // While the server is not verified, the core leaves the rest undecoded.
        repeat { client.receive(&buffer, at: now) } while client.hasMoreInput && client.isConnected
        note()
    }

    mutating func advance(_ duration: Duration) {
        now = now.advanced(by: duration)
        client.advance(to: now)
        note()
    }

    mutating func holdReading(_ isHeld: Bool) {
        client.holdReading(isHeld, at: now)
        note()
    }

    mutating func endOfStream() {
        client.receiveEndOfStream(at: now)
        note()
    }

    mutating func publish(
        _ qos: MQTTQoS,
        _ number: Int = 0,
        topic: String = "t",
        timeout: Duration? = nil
    ) throws {
        let publish = MQTTPublish(topic: topic, qos: qos)
        if qos == .atMostOnce {
            try client.publishAtMostOnce(publish, payload: Array("\(number)".utf8), at: now)
        } else {
            let message = MQTTOutgoingMessage(publish: publish, payload: Array("\(number)".utf8))
            try client.publish(message, call: Call(number), timeout: timeout, at: now)
        }
    }

    mutating func take(_ index: Int, _ reason: MQTTReasonCode = .success) {
        client.acknowledge(receipts[index], reason, at: now)
        note()
    }

    /// Answers a message, with a call that waits for the end of its exchange.
    mutating func answer(
        _ index: Int,
        _ reason: MQTTReasonCode = .success,
        text: String? = nil,
        awaitedBy number: Int? = nil
    ) -> MQTTCompletion {
        var answer = MQTTReceiverAnswer(reason)
        answer.properties.reasonString = text
        let completion = client.acknowledge(
            receipts[index],
            answer,
            awaitedBy: number.map { Call($0) },
            at: now
        )
        note()
        return completion
    }

    mutating func note() {
        for event in client.takeEvents() {
            switch event {
            case .connected: log.append("connected")
            case .challenged(let properties):
                log.append("challenged \(properties.authenticationData ?? [])")
            case .mustVerify(let properties):
                log.append("must verify \(properties.authenticationData ?? [])")
            case .reauthenticated(let properties):
                log.append("reauthenticated \(properties.authenticationData ?? [])")
            case .messages(let arrivals):
                for (publish, receipt) in arrivals.all {
                    log.append("message \(String(decoding: publish.payload.bytes, as: UTF8.self))")
                    topics.append(publish.topic)
                    if let receipt { receipts.append(receipt) }
                }
            case .skipped(let message):
                log.append("skipped \(message.publish.topic) \(message.byteCount)")
            case .published(let call, let code, _): log.append("published \(number(call)) \(code)")
            case .subscribed(let call, let suback, _):
                log.append("subscribed \(number(call)) \(suback.reasonCodes)")
            case .unsubscribed(let call, _): log.append("unsubscribed \(number(call))")
            case .cleared(let number): log.append("cleared \(number)")
            case .mustStore(let step):
                steps.append(step)
                log.append("store \("\(step)".replacing(/MQTTWire\.\w+\./, with: "."))")
            case .completed(let call): log.append("completed \(number(call))")
            case .sessionLost(let call): log.append("session lost \(number(call))")
            case .timedOut(let call): log.append("timed out \(number(call))")
            case .abandoned(let call): log.append("abandoned \(number(call))")
            case .trace(let trace): log.append("trace \(trace.isOutbound) \(trace.text)")
            case .closed(let closure): log.append("closed \(Self.name(closure))")
            }
        }
    }

    func number(_ call: any MQTTCall) -> Int {
        (call as? Call)?.number ?? -1
    }

    static func name(_ closure: MQTTClosure) -> String {
        switch closure {
        case .violation(let violation): "\(violation)".replacing(/MQTTWire\.\w+\./, with: ".")
        case .refused(let code, _): "refused \(code)"
        case .disconnectedByServer(let code, _): "by server \(code)"
        default: "\(closure)"
        }
    }

    /// Takes the log.
    mutating func told() -> [String] {
        defer { log = [] }
        return log
    }
}

extension MQTTPacket {
    static func message(
        _ text: String,
        _ qos: MQTTQoS = .atMostOnce,
        id: UInt16 = 0,
        dup: Bool = false
    ) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: "t",
                qos: qos,
                isDuplicate: dup,
                packetIdentifier: id,
                payload: ByteSlice(copying: text.utf8)
            )
        )
    }
}

extension MQTTAcknowledgement {
    static func ack(_ id: UInt16, _ code: MQTTReasonCode = .success) -> MQTTAcknowledgement {
        MQTTAcknowledgement(packetIdentifier: id, reasonCode: code)
    }
}

extension MQTTArrivals {
    /// Each message with its receipt.
    var all: [(publish: MQTTPublish, receipt: MQTTDeliveryReceipt?)] {
        (0..<count).map { (publish(at: $0), receipt(at: $0)) }
    }
}
