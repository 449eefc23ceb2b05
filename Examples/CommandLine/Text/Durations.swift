extension Duration {
    /// Reads `250ms`, `1.5s`, `2m`, `1h` or a number of seconds, up to 100,000 hours; nil for anything else.
    package init?(argument: String) {
        let units: [(name: String, milliseconds: Double)] = [
            ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("", 1_000),
        ]
        guard let unit = units.first(where: { argument.hasSuffix($0.name) }),
            let number = Double(argument.dropLast(unit.name.count)),
            number >= 0, number * unit.milliseconds <= 3.6e11
        else { return nil }
        self = .milliseconds(Int64((number * unit.milliseconds).rounded()))
    }

    /// The duration in nanoseconds; the greatest or least number for one of more than 292 years.
    package var nanoseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, isTooLong) = Int(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isTooLarge) = whole.addingReportingOverflow(Int(attoseconds / 1_000_000_000))
        return isTooLong || isTooLarge ? (seconds < 0 ? .min : .max) : sum
    }

    /// The duration in seconds.
    package var inSeconds: Double { Double(nanoseconds) / 1e9 }
}

/// A time in nanoseconds as people read it, such as `1.25 ms`.
package func shown(nanoseconds: Int) -> String {
    switch nanoseconds {
    case ..<1_000: "\(nanoseconds) ns"
    case ..<1_000_000: "\(rounded(Double(nanoseconds) / 1e3)) µs"
    case ..<1_000_000_000: "\(rounded(Double(nanoseconds) / 1e6)) ms"
    default: "\(rounded(Double(nanoseconds) / 1e9)) s"
    }
}

/// A number with its thousands apart, such as `1,000,000`.
package func shown(_ number: Int) -> String {
    var text = ""
    let digits = String(number.magnitude)
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
        text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
}

/// A number with three digits, and without zeros after the point.
private func rounded(_ number: Double) -> String {
    let step = number < 10 ? 100.0 : number < 100 ? 10 : 1
    let value = (number * step).rounded() / step
    return value == value.rounded() ? "\(Int(value))" : "\(value)"
}
