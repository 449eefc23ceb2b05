/// The treatment of options that the transport does not support.
///
/// ```swift
/// let portable = provider.whenUnsupported(.ignore([.retained, .expiry]))
/// ```
///
/// A transport refuses an unsupported option before it sends anything. With `ignore` the provider leaves the option out
/// and performs the request again. It then sends later requests without the option at once, unless only this particular
/// server does not support it.
public struct UnsupportedPolicy: Sendable {
    /// The options that may be left out.
    public var ignored: Set<OptionName>

    /// Fails the call with `unsupported`; the default.
    public static let fail = UnsupportedPolicy(ignored: [])

    /// Leaves these options out if they are not supported; all others fail.
    ///
    /// For ``OptionName/qos``, the highest supported quality of service is used instead.
    public static func ignore(_ options: Set<OptionName>) -> UnsupportedPolicy {
        UnsupportedPolicy(ignored: options)
    }
}

extension Provider {
    /// The same provider with a policy for options that the transport does not support; it replaces an earlier policy.
    public func whenUnsupported(_ policy: UnsupportedPolicy) -> Self {
        changed { $0.whenUnsupported(policy) }
    }
}
