/// An update of a subscription with a handler: `subscribed` once, then messages and failures, then `ended`.
///
/// ```swift
/// let handle = provider.subscribe(of: Price.self, entry: .prices, on: .main) { update in
///     switch update {
///     case .subscribed: label.text = "live"
///     case .message(let price): show(price)
///     case .failure(let error): log(error)
///     case .ended(let error): label.text = error == nil ? "closed" : "lost"
///     }
/// }
/// ```
///
/// After `cancel()` the handler is not called again, not even with `ended`.
public enum SubscriptionUpdate<Value: Sendable>: Sendable {
    /// The server has confirmed the subscription.
    ///
    /// `qos` is the granted quality of service. It is nil if the protocol has none, and for a subscription that starts
    /// offline.
    case subscribed(qos: QoS?)
    /// A message arrived.
    case message(Value)
    /// A message could not be decoded, or an interceptor refused it; the subscription continues.
    case failure(WaybillError)
    /// The subscription ended, with an error if it was refused or failed; no update follows.
    case ended(WaybillError?)
}
