/// An entry together with the type of its reply or of its messages, declared once.
///
/// The option for those who want the compiler to know what each endpoint gives. Declare the typed entries as static
/// members beside the enum:
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
/// Give the static member a name that no case of the enum has: an untyped case can be asked for any type. Entries
/// without a typed form are used beside it as before.
public struct TypedEntry<Entry: EntryType, Value: Sendable>: Sendable {
    /// The entry, without the type.
    public let entry: Entry

    /// Ties a type to an entry.
    ///
    /// - Parameter entry: The entry; its reply, or each of its messages, is a `Value`. `Void` and `Receipt` for one
    ///   without a reply.
    public init(_ entry: Entry) {
        self.entry = entry
    }
}

extension Provider {
    /// Does what an entry says and gives the reply as the type that is tied to the entry.
    ///
    /// - Parameter typed: The entry, with the type.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:as:)-(_,Reply.Type)``.
    public func request<Value: Sendable>(_ typed: TypedEntry<Entry, Value>) async throws -> Value {
        try await request(typed.entry, as: Value.self)
    }

    /// Does what an entry says and gives the reply as the type that is tied to the entry.
    ///
    /// - Parameter typed: The entry, with the type.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:as:)-(_,Reply.Type)``.
    public func request<Value: Decodable & Sendable>(
        _ typed: TypedEntry<Entry, Value>
    ) async throws -> Value {
        try await request(typed.entry, as: Value.self)
    }

    /// Subscribes to what an entry says and gives each message as the type that is tied to the entry.
    ///
    /// - Parameter typed: The entry, with the type.
    /// - Returns: The values, once the peer has confirmed the subscription.
    /// - Throws: As ``messages(_:as:)-(_,Value.Type)``.
    public func messages<Value: Sendable>(
        _ typed: TypedEntry<Entry, Value>
    ) async throws -> Messages<Value> {
        try await messages(typed.entry, as: Value.self)
    }

    /// Subscribes to what an entry says and gives each message as the type that is tied to the entry.
    ///
    /// - Parameter typed: The entry, with the type.
    /// - Returns: The values, once the peer has confirmed the subscription.
    /// - Throws: As ``messages(_:as:)-(_,Value.Type)``.
    public func messages<Value: Decodable & Sendable>(
        _ typed: TypedEntry<Entry, Value>
    ) async throws -> Messages<Value> {
        try await messages(typed.entry, as: Value.self)
    }
}
