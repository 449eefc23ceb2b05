import WireCore

extension WaybillError {
    /// How long the server asks to wait before another attempt; nil where it has not said so.
    ///
    /// Where several hosts have failed, the shortest time, if each of them has asked for one.
    public var serverDelay: Duration? {
        if let failure = underlying as? FailoverFailure {
            let delays = failure.attempts.compactMap(\.error.serverDelay)
            return delays.count == failure.attempts.count ? delays.min() : nil
        }
        return (underlying as? HTTPRefusal)?.retryAfter
    }
}

extension HTTPRefusal {
    /// How long the server asks to wait, from the field `Retry-After` (RFC 9110, 10.2.3).
    ///
    /// A date is compared with the server's own, in the field `Date`, so that the clock of this machine does not
    /// matter; without that field it means nothing. At most a year.
    public var retryAfter: Duration? {
        guard let text = field("retry-after") else { return nil }
        let year: Int64 = 365 * 86_400
        if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
            // Digits that are too many for a number mean for ever.
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
