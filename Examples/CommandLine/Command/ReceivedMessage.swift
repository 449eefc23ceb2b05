import CommandText
import Waybill
import WaybillMQTT

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

extension WallTime {
    /// The present.
    static var now: WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: Int(time.tv_sec), nanoseconds: Int(time.tv_nsec))
    }
}

extension ShownMessage {
    /// A message of the provider, as it is shown.
    init(_ message: Message) {
        self.init()
        topic = message.topic
        body = message.body.bytes
        qos = message.qos.rawValue
        isRetained = message.isRetained
        isDuplicate = message.isDuplicate
        // That of a message which is acknowledged by hand is the provider's own.
        identifier = message.headers["message-id"] ?? message.id?.description
        contentType = message.contentType
        replyTopic = message.replyTopic
        correlationData = message[.correlationData]
        expiry = message[.expiry].map { Int($0.components.seconds) }
        headers = message.headers.map { ($0.name, $0.value) }
        if let type = message[.eventType] { headers.insert(("event", type), at: 0) }
        time = .now
    }
}
