package import Waybill

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// From a send to what is stored of it, and back.
extension StoredMessage {
    /// Keeps the entry's own request, without the options that were left out of the send.
    ///
    /// - Parameter request: The request after the interceptors, whose quality of service and expiry are those of the
    ///   packet.
    package init(_ request: Request) {
        let sent = request.command
        var request = request
        if let original = request.chain?.original, original.command.kind == .send {
            request = original
        }
        let command = request.command
        func kept<Value>(_ key: OptionKey<Value>) -> Value? {
            sent[key] == nil ? nil : command[key]
        }
        self.init(
            topic: request.topic ?? "",
            body: request.body.bytes,
            contentType: request.contentType,
            headers: request.headers.map { [$0.name, $0.value] },
            qos: sent.qos == .exactlyOnce ? 2 : 1,
            isRetained: kept(.storedRetained) ?? false,
            expiry: sent[.storedExpiry].map { Date() + $0 / .seconds(1) },
            responseTopic: kept(.responseTopic),
            correlationData: kept(.correlationData),
            isText: kept(.storedPayloadFormat).map { $0 == .text },
            needsToken: request.needsToken
        )
    }

    /// The number of bytes in memory that count for the message.
    package var byteCount: Int {
        // The number that SQLiteBacklog adds, too.
        let overhead = 128
        let properties =
            (contentType?.utf8.count ?? 0) + (responseTopic?.utf8.count ?? 0)
            + (correlationData?.count ?? 0)
        let fields = headers.reduce(0) { $1.reduce($0) { $0 + $1.utf8.count } }
        return overhead + topic.utf8.count + body.count + properties + fields
    }

    private var expiryError: WaybillError {
        WaybillError(.timedOut, "the stored message has expired", topic: topic)
    }

    /// The command of the send, without its expiry.
    package var command: EntryCommand {
        var command = EntryCommand.send(qos: qos == 2 ? .exactlyOnce : .atLeastOnce)
        if isRetained { command[.storedRetained] = true }
        command[.responseTopic] = responseTopic
        command[.correlationData] = correlationData
        command[.storedPayloadFormat] = isText.map { $0 ? .text : .bytes }
        return command
    }

    /// Makes an expiry of what is left of a message's time.
    package static func expiry(_ rest: TimeInterval) -> Duration {
        // A store may return any date; a century is as good as a million years.
        .seconds(min(max(1, rest), Double(UInt32.max)))
    }

    /// Makes the request again, with the rest of its time.
    ///
    /// - Throws: `timedOut` if the message has expired.
    package func request(at now: Date) throws(WaybillError) -> Request {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        var command = command
        if let expiry {
            let rest = expiry.timeIntervalSince(now)
            guard rest > 0 else { throw expiryError }
            command[.storedExpiry] = Self.expiry(rest)
        }
        return Request(
            topic: topic,
            command: command,
            body: Payload(body),
            contentType: contentType,
            headers: fields,
            needsToken: needsToken
        )
    }
}
