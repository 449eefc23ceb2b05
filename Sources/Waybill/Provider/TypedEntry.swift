/// An entry together with the type of its reply or of its messages, declared once.
///
/// With typed entries the compiler knows the result type of each endpoint. Declare them as static members beside the
/// enum:
///
/// ```swift
/// enum ShopEntry: EntryType {
///     case quoteCall(Quote), priceFeed, say(String)
///     ...
/// }
///
/// extension TypedEntry where Entry == ShopEntry, Value == Fare {
///     static func quote(_ quote: Quote) -> Self { Self(.quoteCall(quote)) }
/// }
/// extension TypedEntry where Entry == ShopEntry, Value == Price {
///     static var prices: Self { Self(.priceFeed) }
/// }
///
/// let fare = try await shop.request(.quote(quote))           // a Fare
/// for try await price in try await shop.messages(.prices) {} // Prices
/// let text: String = try await shop.request(.quote(quote))   // does not compile
/// ```
///
/// Give the static member a name that no case of the enum has, because an untyped case can be requested as any type.
/// Entries without a typed form work as before.
public struct TypedEntry<Entry: EntryType, Value: Sendable>: Sendable {
    /// The entry, without the type.
    public let entry: Entry

    /// Combines an entry with a type.
    ///
    /// - Parameter entry: The entry; its reply, or each of its messages, is a `Value`. Use `Void` or `Receipt` for an
    ///   entry without a reply.
    public init(_ entry: Entry) {
        self.entry = entry
    }
}

extension Provider {
    /// Performs an entry and returns its outcome as the entry's type; see ``request(_:as:)``.
    public func request<Value: Sendable>(_ typed: TypedEntry<Entry, Value>) async throws -> Value {
        try await request(typed.entry, as: Value.self)
    }

    /// Subscribes, and decodes each message to the entry's type; see ``messages(_:as:)``.
    public func messages<Value: Sendable>(
        _ typed: TypedEntry<Entry, Value>
    ) async throws -> Messages<Value> {
        try await messages(typed.entry, as: Value.self)
    }
}
