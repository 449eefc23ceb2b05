package import WireCore

/// CONNECT: a client's request for a connection (MQTT 5, 3.1).
package struct MQTTConnect: Hashable, Sendable {
    package var version: MQTTVersion
    package var clientIdentifier: String
    /// Clean Start in 5, Clean Session in 3.1.1.
    package var cleanStart: Bool
    /// In seconds; zero turns it off.
    package var keepAlive: UInt16
    package var will: MQTTWill?
    package var userName: String?
    package var password: [UInt8]?
    package var properties: MQTTProperties

    package init(
        version: MQTTVersion = .v5,
        clientIdentifier: String = "",
        cleanStart: Bool = true,
        keepAlive: UInt16 = 60,
        will: MQTTWill? = nil,
        userName: String? = nil,
        password: [UInt8]? = nil,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.version = version
        self.clientIdentifier = clientIdentifier
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.will = will
        self.userName = userName
        self.password = password
        self.properties = properties
    }
}

/// The message that the server publishes when the connection ends without DISCONNECT (MQTT 5, 3.1.2.5).
package struct MQTTWill: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qos: MQTTQoS
    package var isRetained: Bool
    package var properties: MQTTProperties

    package init(
        topic: String,
        payload: [UInt8] = [],
        qos: MQTTQoS = .atMostOnce,
        isRetained: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.isRetained = isRetained
        self.properties = properties
    }
}

extension MQTTConnect {
    private static let protocolName: [UInt8] = Array("MQTT".utf8)

    // The flags of 3.1.2.3, from the lowest bit.
    private static let cleanStartFlag: UInt8 = 0x02
    private static let willFlag: UInt8 = 0x04
    private static let willRetainFlag: UInt8 = 0x20
    private static let passwordFlag: UInt8 = 0x40
    private static let userNameFlag: UInt8 = 0x80

    private var flags: UInt8 {
        var flags: UInt8 = cleanStart ? Self.cleanStartFlag : 0
        if let will {
            flags |= Self.willFlag | will.qos.rawValue << 3
            if will.isRetained { flags |= Self.willRetainFlag }
        }
        if password != nil { flags |= Self.passwordFlag }
        if userName != nil { flags |= Self.userNameFlag }
        return flags
    }

    package func encode(into writer: inout ByteWriter) throws(MQTTEncodingError) {
        if version == .v3_1_1 {
            guard password == nil || userName != nil else { throw .passwordWithoutUserName }
            guard cleanStart || !clientIdentifier.isEmpty else { throw .clientIdentifierMissing }
        }
        if let will { try MQTTTopicName.validate(will.topic) }
        try writer.append(packet: .connect) { (body) throws(MQTTEncodingError) in
            try body.append(binary: Self.protocolName, "protocol name")
            body.append(version.rawValue)
            body.append(flags)
            body.append(keepAlive)
            try body.append(properties, .connect, version)
            try body.append(string: clientIdentifier, "client identifier")
            if let will {
                try body.append(will.properties, .will, version)
                try body.append(string: will.topic, "will topic")
                try body.append(binary: will.payload, "will payload")
            }
            if let userName { try body.append(string: userName, "user name") }
            if let password { try body.append(binary: password, "password") }
        }
    }

    init(from reader: inout ByteReader) throws(MQTTViolation) {
        guard try reader.binary(.connect) == Self.protocolName else { throw .protocolNameInvalid }
        guard let version = MQTTVersion(rawValue: try reader.uint8(.connect)) else {
            throw .protocolVersionUnsupported
        }
        let flags = try reader.uint8(.connect)
        guard flags & 0x01 == 0 else { throw .reservedBits(.connect) }
        let keepAlive = try reader.uint16(.connect)
        let properties = try reader.properties(.connect, .connect, version)
        let clientIdentifier = try reader.string(.connect)

        let willQualityOfService = try reader.qos(flags >> 3 & 0x03)
        var will: MQTTWill?
        if flags & Self.willFlag != 0 {
            let properties = try reader.properties(.will, .connect, version)
            let topic = try reader.string(.connect)
            do { try MQTTTopicName.validate(topic) } catch { throw .topicNameInvalid }
            will = MQTTWill(
                topic: topic,
                payload: try reader.binary(.connect),
                qos: willQualityOfService,
                isRetained: flags & Self.willRetainFlag != 0,
                properties: properties
            )
        } else if willQualityOfService != .atMostOnce || flags & Self.willRetainFlag != 0 {
            throw .reservedBits(.connect)
        }
        let hasUserName = flags & Self.userNameFlag != 0
        let hasPassword = flags & Self.passwordFlag != 0
        guard version == .v5 || hasUserName || !hasPassword else { throw .passwordWithoutUserName }
        self.init(
            version: version,
            clientIdentifier: clientIdentifier,
            cleanStart: flags & Self.cleanStartFlag != 0,
            keepAlive: keepAlive,
            will: will,
            userName: hasUserName ? try reader.string(.connect) : nil,
            password: hasPassword ? try reader.binary(.connect) : nil,
            properties: properties
        )
        try reader.expectEnd(.connect)
    }
}

extension MQTTConnect: CustomStringConvertible {
    package var description: String {
        let level = version == .v5 ? "5" : "3.1.1"
        var text = "CONNECT client=\(clientIdentifier) version=\(level) keepAlive=\(keepAlive)"
        if cleanStart { text += " cleanStart" }
        if let will { text += " will=\(will.topic)" }
        if userName != nil { text += " user=<redacted>" }
        if password != nil { text += " password=<redacted>" }
        if let method = properties.authenticationMethod { text += " method=\(method)" }
        if properties.authenticationData != nil { text += " data=<redacted>" }
        return text
    }
}
