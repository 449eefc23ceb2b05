package import Waybill
import WireCore

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// From a send to what is stored of it, and back.
extension StoredMessage {
    /// Keeps the entry's own request, without the options that its provider has left out of the send.
    ///
    /// - Parameter request: The request after the interceptors, whose quality of service and expiry are those of the
    ///   packet.
    /// - Throws: `limitExceeded` if the options are too long to be stored; `invalidEntry` if several keys of
    ///   this process have the name of one.
    package init(_ request: Request) throws(WaybillError) {
        let (sent, chain) = (request.command, request.chain)
        var request = request
        if let original = chain?.original, original.command.kind == .send {
            request = original
        }
        self.init(
            topic: request.topic ?? "",
            body: request.body.bytes,
            contentType: request.contentType,
            headers: request.headers.map { [$0.name, $0.value] },
            qos: sent.qos == .exactlyOnce ? 2 : 1,
            expiry: sent[.storedExpiry].map { Date() + $0 / .seconds(1) },
            needsToken: request.needsToken
        )
        guard !request.command.isPlain else { return }
        do throws(StoredOptionsError) {
            storedOptions = try request.command.storedOptions { chain?.leavesOut($0) ?? false }
        } catch {
            throw Self.refusal(error).about(request)
        }
    }

    private static func refusal(_ error: StoredOptionsError) -> WaybillError {
        switch error {
        case .ambiguous(let option):
            WaybillError(
                .invalidEntry,
                "several keys of this program are stored as \(option): nothing was sent"
            )
        case .tooLong, .unknownFormat, .malformed:
            WaybillError(
                .limitExceeded,
                "the options of the send have more than \(StoredOptions.maximumByteCount) bytes: nothing was sent"
            )
        }
    }

    /// The number of bytes in memory that count for the message.
    package var byteCount: Int {
        // The number that SQLiteBacklog adds, too.
        let overhead = 128
        let properties = (contentType?.utf8.count ?? 0) + storedOptions.bytes.count
        let fields = headers.reduce(0) { $1.reduce($0) { $0 + $1.utf8.count } }
        return overhead + topic.utf8.count + body.count + properties + fields
    }

    private var expiryError: WaybillError {
        WaybillError(.timedOut, "the stored message has expired", topic: topic)
    }

    /// The quality of service of the packet.
    package var quality: QoS { qos == 2 ? .exactlyOnce : .atLeastOnce }

    private func unknown(_ name: String) -> WaybillError {
        // Made for the error: this process has no key with the name.
        let shown = String(String.UnicodeScalarView(name.unicodeScalars.prefix(100)))
        let option = OptionName(shown.escaped)
        var error = WaybillError(
            .unsupported,
            "this program does not know the option \(option) of a stored message: it is kept, and not sent",
            topic: topic
        )
        error.option = option
        return error
    }

    /// Whether all options of the message are those of a transport, with values that this process knows.
    ///
    /// Another message may wait for a program that knows its options, or whose interceptors take them out.
    package func isKnown(to keys: [OptionName]) -> Bool {
        storedOptions.isEmpty
            || options.allSatisfy { option in keys.contains { $0.knows(option) } }
    }

    /// Makes an expiry of what is left of a message's time.
    package static func expiry(_ rest: TimeInterval) -> Duration {
        // A store may return any date; a century is as good as a million years.
        .seconds(min(max(1, rest), Double(UInt32.max)))
    }

    /// Makes the request again, with the rest of its time.
    ///
    /// - Parameter now: The time.
    /// - Returns: The request.
    /// - Throws: `timedOut` if the message has expired; `unsupported` if this process does not know one of its options.
    package func request(at now: Date) throws(WaybillError) -> Request {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        var command = EntryCommand.send(qos: quality)
        if let expiry {
            let rest = expiry.timeIntervalSince(now)
            guard rest > 0 else { throw expiryError }
            command[.storedExpiry] = Self.expiry(rest)
        }
        if let name = command.add(storedOptions) { throw unknown(name) }
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
