/// What a provider does with options that its transport does not support.
///
/// ```swift
/// let portable = provider.whenUnsupported(.ignore([.retain, .expiry]))
/// ```
///
/// A transport refuses what it cannot do before it sends anything. With `ignore` the provider leaves that option out and
/// performs the request again, and remembers it: later requests are sent without the option at once. What a particular
/// server does not support is not remembered, since another server may.
public struct UnsupportedPolicy: Sendable {
    /// The options that are left out.
    public var ignored: Set<UnsupportedOption>

    /// The call fails with `unsupported`: the default.
    public static let fail = UnsupportedPolicy(ignored: [])

    /// These options are left out where they are not supported; all others fail.
    ///
    /// For ``UnsupportedOption/qos`` the best quality of service that is supported is used instead.
    public static func ignore(_ options: Set<UnsupportedOption>) -> UnsupportedPolicy {
        UnsupportedPolicy(ignored: options)
    }
}

extension Provider {
    /// The same provider, leaving out options that the transport does not support.
    ///
    /// - Parameter policy: Which options may be left out.
    /// - Returns: A provider with the policy, which replaces an earlier one.
    public func whenUnsupported(_ policy: UnsupportedPolicy) -> Self {
        changed { $0.whenUnsupported(policy) }
    }
}
