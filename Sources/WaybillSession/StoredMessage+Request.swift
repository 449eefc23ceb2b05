package import Waybill

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// From a send to what is stored of it, and back.
extension StoredMessage {
    /// - Parameters:
    ///   - request: The request after the interceptors; the entry's own one is stored.
    ///   - options: The options of its command, whose quality of service and expiry are those of the packet.
    package init(_ request: Request, _ options: SendOptions) {
        let (qos, expiry) = (options.qos, options.expiry)
        var (request, options) = (request, options)
        if let original = request.chain?.original, case .send(let stated) = original.command {
            (request, options) = (original, stated)
        }
        self.init(
            topic: request.topic ?? "",
            body: request.body.bytes,
            contentType: request.contentType,
            headers: request.headers.map { [$0.name, $0.value] },
            qos: qos == .exactlyOnce ? 2 : 1,
            isRetained: options.retain,
            expiry: (expiry ?? options.expiry).map { Date() + $0 / .seconds(1) },
            responseTopic: options.responseTopic,
            correlationData: options.correlationData,
            isText: options.isText,
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

    /// The options of the send, without its expiry.
    package var options: SendOptions {
        SendOptions(
            qos: qos == 2 ? .exactlyOnce : .atLeastOnce,
            retain: isRetained,
            responseTopic: responseTopic,
            correlationData: correlationData,
            isText: isText
        )
    }

    /// Makes an expiry of what is left of a message's time.
    package static func expiry(_ rest: TimeInterval) -> Duration {
        // A store may return any date; a century is as good as a million years.
        .seconds(min(max(1, rest), Double(UInt32.max)))
    }

    /// Makes the request again, with the rest of its time.
    ///
    /// - Throws: `timedOut` if the message has expired.
    package func request(at now: Date) throws(WaybillError) -> (Request, SendOptions) {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        var options = options
        if let expiry {
            let rest = expiry.timeIntervalSince(now)
            guard rest > 0 else { throw expiryError }
            options.expiry = Self.expiry(rest)
        }
        let request = Request(
            topic: topic,
            command: .send(options),
            body: Payload(body),
            contentType: contentType,
            headers: fields,
            needsToken: needsToken
        )
        return (request, options)
    }
}
