import WireCore

extension WaybillError {
    /// How long the server asks the client to wait before another attempt; nil if it does not ask.
    ///
    /// Where several hosts failed and each asked for a delay, the shortest of them; nil otherwise.
    public var serverDelay: Duration? {
        if let failure = underlying as? FailoverFailure {
            let delays = failure.attempts.compactMap(\.error.serverDelay)
            return delays.count == failure.attempts.count ? delays.min() : nil
        }
        return (underlying as? HTTPRefusal)?.retryAfter
    }
}

extension HTTPRefusal {
    /// How long the server asks the client to wait, from the field `Retry-After` (RFC 9110, 10.2.3).
    ///
    /// A date is compared with the server's field `Date`, so the clock of this machine does not matter. Without that
    /// field a date is ignored. The result is at most a year.
    public var retryAfter: Duration? {
        guard let text = field("retry-after") else { return nil }
        let year: Int64 = 365 * 86_400
        if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
            // More digits than a number holds count as a year.
            return .seconds(min(Int64(text) ?? year, year))
        }
        guard let date = HTTPDate(text), let now = field("date").flatMap({ HTTPDate($0) })
        else { return nil }
        return .seconds(min(max(Int64(date.seconds - now.seconds), 0), year))
    }

    private func field(_ name: String) -> String? {
        headers.first { $0.name.hasSameBytesIgnoringASCIICase(as: name) }?.value
    }
}
