import WireCore

/// Whether a wire logger receives bodies.
public enum WireLogBodies: Hashable, Sendable {
    /// It receives no bodies; the default.
    case hidden
    /// It receives bodies; for development only, because bodies may hold passwords, tokens and personal data.
    ///
    /// Credentials, the values of headers and the body of a will stay hidden.
    case shownAlthoughTheyMayHoldSecrets
}

extension WireLogger {
    /// No bodies.
    public var bodies: WireLogBodies { .hidden }

    /// The same logger with or without bodies, for the `wireLogger` of a transport's configuration.
    ///
    /// ```swift
    /// configuration.wireLogger = StandardErrorWireLogger()
    ///     .showing(bodies: .shownAlthoughTheyMayHoldSecrets)
    /// ```
    ///
    /// - Parameter bodies: Whether records contain bodies.
    /// - Returns: A logger that passes each record to this one.
    public func showing(bodies: WireLogBodies) -> some WireLogger {
        BodyWireLogger(base: self, bodies: bodies)
    }

    /// Logs a frame, with its body if the logger wants bodies.
    package func logFrame(
        _ direction: WireRecord.Direction,
        _ text: String,
        name: String,
        topic: String? = nil,
        byteCount: Int,
        body: @autoclosure () -> Payload,
        of label: String? = nil
    ) {
        var record = WireRecord(
            kind: .frame,
            direction: direction,
            text: text,
            byteCount: byteCount
        )
        record.name = name
        record.topic = topic
        record.label = label
        if bodies == .shownAlthoughTheyMayHoldSecrets {
            let body = body()
            record.body = body.isEmpty ? nil : body
        }
        log(record)
    }
}

/// Passes each record to another logger, with or without its body.
private struct BodyWireLogger<Base: WireLogger>: WireLogger {
    let base: Base
    let bodies: WireLogBodies

    func log(_ record: WireRecord) {
        base.log(record)
    }
}

extension Provider {
    /// The same provider with a logger for requests, receipts, messages and failures, with or without bodies.
    ///
    /// ```swift
    /// let shown = chat.logged(StandardErrorWireLogger(), bodies: .shownAlthoughTheyMayHoldSecrets)
    /// ```
    public func logged(_ logger: some WireLogger, bodies: WireLogBodies) -> Self {
        logged(logger.showing(bodies: bodies))
    }
}

extension WireRecord {
    /// The record in one line, as the loggers of this package write it.
    ///
    /// The line has the description and then the body, if the record has one.
    ///
    /// A body that is text is shown as text with control characters escaped, and any other body in hexadecimal digits.
    /// It is cut after 4,096 bytes.
    public var line: String {
        guard let body else { return description.escaped }
        return "\(description.escaped)  \(Self.shown(body))"
    }

    private static func shown(_ body: Payload) -> String {
        let limit = 4_096
        let bytes = body.bytes.prefix(limit)
        let more = body.count > limit ? " …" : ""
        // The cut may divide a character.
        guard let text = Payload(Array(bytes)).text ?? body.text.map({ cut($0, to: limit) }) else {
            let digits = bytes.map { byte in
                (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
            return "<\(digits.joined(separator: " "))\(more)>"
        }
        return "\(text.escaped)\(more)"
    }

    private static func cut(_ text: String, to byteCount: Int) -> String {
        var end = text.utf8.index(text.startIndex, offsetBy: byteCount)
        // Back to the start of a character.
        while end.samePosition(in: text.unicodeScalars) == nil, end > text.startIndex {
            end = text.utf8.index(before: end)
        }
        return String(text[..<end])
    }
}
