import WireCore

/// A date in one of HTTP's three forms (RFC 9110, 5.6.7).
package struct HTTPDate: Hashable, Sendable {
    /// Seconds since the beginning of 1970 (UTC), without leap seconds.
    package let seconds: Int

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Reads a field value; nil if it is no date.
    ///
    /// The name of the day is ignored. The forms are `Sun, 06 Nov 1994 08:49:37 GMT` and the obsolete
    /// `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. A year of two digits is at most 50 years ahead
    /// of the current year.
    ///
    /// - Parameters:
    ///   - text: The field value.
    ///   - currentYear: The current year, for years of two digits.
    package init?(_ text: String, currentYear: Int = 2_000) {
        let parts = text.split { $0 == " " || $0 == "-" || $0 == "," }.dropFirst().map(String.init)
        guard parts.count == 4 || parts.count == 5 else { return nil }
        let isAscTime = parts.count == 4 && Self.months.contains(parts[0])
        let (day, month, year, time) =
            isAscTime
            ? (parts[1], parts[0], parts[3], parts[2]) : (parts[0], parts[1], parts[2], parts[3])
        guard isAscTime || (parts.count == 5 && parts[4] == "GMT"),
            let dayNumber = Self.number(day),
            let monthIndex = Self.months.firstIndex(of: month),
            let writtenYear = Self.number(year), year.utf8.count == 4 || year.utf8.count == 2,
            let secondsOfDay = Self.secondsOfDay(time)
        else { return nil }
        let fullYear =
            year.utf8.count == 4 ? writtenYear : Self.full(writtenYear, near: currentYear)
        let isLeap = fullYear % 4 == 0 && (fullYear % 100 != 0 || fullYear % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...lengths[monthIndex]).contains(dayNumber), fullYear >= 1 else { return nil }
        let before = fullYear - 1
        let leapDays = before / 4 - before / 100 + before / 400
        let days =
            before * 365 + leapDays + lengths[..<monthIndex].reduce(0, +) + dayNumber - 1 - 719_162
        seconds = days * 86_400 + secondsOfDay
    }

    private static func secondsOfDay(_ text: String) -> Int? {
        let parts = text.split(atByte: ":")
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }),
            let hour = Self.number(parts[0]), let minute = Self.number(parts[1]),
            let second = Self.number(parts[2]), hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + second
    }

    private static func full(_ digits: Int, near year: Int) -> Int {
        let candidate = year / 100 * 100 + digits
        return candidate > year + 50 ? candidate - 100 : candidate
    }

    private static func number(_ text: some StringProtocol) -> Int? {
        guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int(text)
    }
}
