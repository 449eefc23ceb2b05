import MQTTWire
import Testing
import TransportTestSupport
import WaybillLink
import WaybillTesting
import WireCore

/// An MQTT client that sends and receives single packets. It acknowledges nothing by itself.
final class LoopbackPacketClient {
    let stream: any ByteStream
    private let version: MQTTVersion
    private var decoder: MQTTPacketDecoder
    private var buffer = ReceiveBuffer()
    /// True when a read has found the end of the connection.
    private(set) var isOver = false

    init(_ bench: LoopbackBench, _ version: MQTTVersion = .v5) {
        stream = bench.connect(.mqtt)
        self.version = version
        decoder = MQTTPacketDecoder(version: version, role: .client, maximumPacketSize: 1 << 20)
    }

    /// A client that has connected, and subscribed if there is a filter.
    convenience init(
        _ bench: LoopbackBench,
        _ version: MQTTVersion = .v5,
        connectedAs name: String,
        clean: Bool = false,
        expiry: UInt32? = 100,
        receiveMaximum: UInt16? = nil,
        will: String? = nil,
        subscribing filter: String? = nil,
        _ qos: MQTTQoS = .exactlyOnce
    ) throws {
        self.init(bench, version)
        try connect(
            as: name,
            clean: clean,
            expiry: expiry,
            receiveMaximum: receiveMaximum,
            will: will,
            subscribing: filter,
            qos
        )
    }

    func bytes(_ packets: [MQTTPacket]) throws -> [UInt8] {
        var writer = MQTTPacketWriter(version: version, isTracing: false)
        for packet in packets { try writer.write(packet) }
        return writer.outbound.bytes
    }

    func send(_ packets: MQTTPacket...) throws {
        try write(bytes(packets))
    }

    func write(_ bytes: some Collection<UInt8>) throws {
        try Array(bytes).withUnsafeBytes { _ = try stream.write($0) }
    }

    /// The received packets in short form: the kind, the identifier, and the fields of the kind.
    func received() throws -> [String] {
        var packets: [String] = []
        while !isOver {
            var space = [UInt8](repeating: 0, count: 65_536)
            let outcome = try space.withUnsafeMutableBytes { try stream.read(into: $0) }
            guard case .bytes(let count) = outcome else {
                isOver = outcome == .endOfStream
                return packets
            }
            buffer.append(space[..<count])
            while let packet = try decoder.next(&buffer) { packets.append(Self.text(packet)) }
        }
        return packets
    }

    /// Connects, and subscribes if there is a filter.
    /// - Returns: The broker's answers.
    @discardableResult
    func connect(
        as name: String,
        clean: Bool = false,
        expiry: UInt32? = 100,
        receiveMaximum: UInt16? = nil,
        will: String? = nil,
        subscribing filter: String? = nil,
        _ qos: MQTTQoS = .exactlyOnce
    ) throws -> [String] {
        var connect = MQTTConnect(version: version, clientIdentifier: name, cleanStart: clean)
        if version == .v5 {
            connect.properties.sessionExpiryInterval = expiry
            connect.properties.receiveMaximum = receiveMaximum
        }
        if let will { connect.will = MQTTWill(topic: will, payload: Array("gone".utf8)) }
        try send(.connect(connect))
        if let filter { try subscribe(filter, qos) }
        return try received()
    }

    func subscribe(_ filter: String, _ qos: MQTTQoS) throws {
        let subscription = MQTTSubscription(filter: filter, qos: qos)
        try send(.subscribe(MQTTSubscribe(packetIdentifier: 9, subscriptions: [subscription])))
    }

    func publish(
        _ text: String,
        to topic: String,
        _ qos: MQTTQoS = .atMostOnce,
        identifier: UInt16 = 0,
        isDuplicate: Bool = false,
        isRetained: Bool = false
    ) throws {
        try send(
            .publish(
                MQTTPublish(
                    topic: topic,
                    qos: qos,
                    isRetained: isRetained,
                    isDuplicate: isDuplicate,
                    packetIdentifier: identifier,
                    payload: ByteSlice(copying: Array(text.utf8))
                )
            )
        )
    }

    /// Publishes `m1` and so on to `t`, each with its number as packet identifier.
    func publish(_ numbers: ClosedRange<UInt16>, _ qos: MQTTQoS) throws {
        for number in numbers { try publish("m\(number)", to: "t", qos, identifier: number) }
    }

    func answer(_ make: (MQTTAcknowledgement) -> MQTTPacket, _ identifier: UInt16) throws {
        try send(make(MQTTAcknowledgement(packetIdentifier: identifier)))
    }

    private static func text(_ packet: MQTTPacket) -> String {
        switch packet {
        case .connack(let connack):
            if connack.reasonCode.isFailure { return "refused \(connack.reasonCode.rawValue)" }
            return connack.sessionPresent ? "present" : "new"
        case .publish(let publish):
            let body = String(decoding: publish.payload.bytes, as: UTF8.self)
            let repeated = publish.isDuplicate ? " again" : ""
            return "\(body) \(publish.packetIdentifier)\(repeated)"
        case .puback(let answer): return "puback \(answer.packetIdentifier)"
        case .pubrec(let answer): return "pubrec \(answer.packetIdentifier)"
        case .pubrel(let answer): return "pubrel \(answer.packetIdentifier)"
        case .pubcomp(let answer): return "pubcomp \(answer.packetIdentifier)"
        case .suback: return "suback"
        case .unsuback: return "unsuback"
        case .disconnect(let packet): return "disconnect \(packet.reasonCode.rawValue)"
        default: return "\(packet.kind)"
        }
    }
}
