extension ConnectOptions: CustomStringConvertible {
    /// The names of the options that are set; never the user name or the password.
    public var description: String {
        let set: [(String, Bool)] = [
            ("clientIdentifier", clientIdentifier != nil), ("userName", userName != nil),
            ("password", password != nil), ("will", will != nil),
            ("cleanStart", cleanStart != nil), ("sessionExpiry", sessionExpiry != nil),
            ("keepAlive", keepAlive != nil),
            ("timeout", timeout != nil),
            ("upgradeHeaders", !upgradeHeaders.isEmpty),
        ]
        return "[" + set.filter(\.1).map(\.0).joined(separator: ", ") + "]"
    }
}
