/// What a subscription with a handler tells, in this order: `subscribed` once, then messages and failures, then `ended`.
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
/// After `cancel()` the handler is not called any more, not even with `ended`.
public enum SubscriptionUpdate<Value: Sendable>: Sendable {
    /// The server has confirmed the subscription, with the quality of service that it granted; nil where the protocol has
    /// no such thing, and for a subscription that starts offline.
    case subscribed(qos: QoS?)
    /// A message has come.
    case message(Value)
    /// A message could not be decoded, or an interceptor has refused it. The subscription goes on.
    case failure(WaybillError)
    /// The subscription is over: with an error when it was refused or has failed, without one otherwise. Nothing follows.
    case ended(WaybillError?)
}
