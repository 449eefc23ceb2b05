extension WaybillError {
    /// How long the server asks to wait before another attempt; nil where it has not said so.
    public var serverDelay: Duration? { (underlying as? HTTPRefusal)?.retryAfter }
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
        guard let date = HTTPDate.seconds(text), let present = field("date"),
            let now = HTTPDate.seconds(present)
        else { return nil }
        return .seconds(min(max(date - now, 0), year))
    }

    private func field(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name }?.value
    }
}

/// The preferred form of dates (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Seconds since the beginning of 1970; nil for what is no such date.
    static func seconds(_ text: String) -> Int64? {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 6, words[0].utf8.count == 4, words[0].hasSuffix(","),
            words[5] == "GMT", let day = number(words[1], 1...31),
            let month = months.firstIndex(of: String(words[2])),
            words[3].utf8.count == 4, let year = number(words[3], 0...9_999)
        else { return nil }
        let time = words[4].split(separator: ":", omittingEmptySubsequences: false)
        // A leap second counts as the next minute's first.
        guard time.count == 3, let hour = number(time[0], 0...23),
            let minute = number(time[1], 0...59), let second = number(time[2], 0...60)
        else { return nil }
        let days = days(year, Int64(month) + 1, day)
        return ((days * 24 + hour) * 60 + minute) * 60 + second
    }

    private static func number(_ text: Substring, _ range: ClosedRange<Int64>) -> Int64? {
        guard (2...4).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }),
            let number = Int64(text), range.contains(number)
        else { return nil }
        return number
    }

    /// Days from 1 January 1970 in the Gregorian calendar, in which 400 years have 146,097 days.
    ///
    /// Years are counted from March, so that a leap day is the last of its year.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let marchYear = month > 2 ? year : year - 1
        let marchMonth = (month + 9) % 12
        let leapDays = floor(marchYear, 4) - floor(marchYear, 100) + floor(marchYear, 400)
        return marchYear * 365 + leapDays + (153 * marchMonth + 2) / 5 + day - 719_469
    }

    private static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
        (number - (number < 0 ? divisor - 1 : 0)) / divisor
    }
}
