// The examples of the guide's page about types (`Types.md`), compiled.
import Waybill

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

struct Quote: Codable, Equatable, Sendable {
    var from: String
}

struct Fare: Codable, Equatable, Sendable {
    var cents: Int
}

struct ShopError: Codable, Equatable, Error {
    var reason: String
}

/// A shop whose entries have replies.
enum ShopEntry: EntryType {
    case open
    case quoteCall(Quote)
    case priceFeed
    case say(String)

    var topic: String? {
        switch self {
        case .open: nil
        case .quoteCall: "shop/quote"
        case .priceFeed: "shop/prices"
        case .say: "shop/say"
        }
    }

    var command: EntryCommand {
        switch self {
        case .open: .connect
        case .quoteCall, .say: .send
        case .priceFeed: .subscribe
        }
    }

    var body: EntryBody {
        switch self {
        case .quoteCall(let quote): .value(quote)
        case .say(let text): .text(text)
        case .open, .priceFeed: .none
        }
    }
}

extension TypedEntry where Entry == ShopEntry, Value == Fare {
    static func quote(_ quote: Quote) -> Self { Self(.quoteCall(quote)) }
    static var prices: Self { Self(.priceFeed) }
}

extension TypedEntry where Entry == ShopEntry, Value == Void {
    static func tell(_ text: String) -> Self { Self(.say(text)) }
}

// Each of these is a compiler error. That was checked by hand with `swiftc -typecheck` of Swift 6.3:
//
//     let text: String = try await shop.request(.quote(quote))
//     // error: cannot convert value of type 'Fare' to specified type 'String'
//     let receipt: Receipt = try await shop.request(.quote(quote))
//     // error: cannot convert value of type 'Fare' to specified type 'Receipt'
//     for try await price in try await shop.messages(.prices) { let text: String = price }
//     // error: cannot convert value of type 'Fare' to specified type 'String'
//     try await shop.request(.quote(quote), as: String.self)
//     // error: type 'ShopEntry' has no member 'quote'

// MARK: A family of types with one coder

/// A small model of a Protobuf library: types that encode themselves and are not `Codable`.
protocol SerializedMessage: Sendable {
    init(serializedBytes: [UInt8]) throws
    func serializedBytes() throws -> [UInt8]
}

struct ProtobufCoder: BodyEncoder, BodyDecoder {
    var contentType: String? { "application/x-protobuf" }

    func encode<Value: Sendable>(_ value: Value) throws -> Payload? {
        guard let message = value as? any SerializedMessage else { return nil }
        return Payload(try message.serializedBytes())
    }

    func accepts(contentType: String?) -> Bool { contentType == "application/x-protobuf" }

    func decodes(_ type: Any.Type) -> Bool { type is any SerializedMessage.Type }

    func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
        guard let type = type as? any SerializedMessage.Type else { return nil }
        return try type.init(serializedBytes: message.body.bytes) as? Value
    }
}

/// A provider that uses Protobuf for Protobuf types and JSON for all others.
func protobufShop(_ transport: some Transport) -> Provider<ShopEntry> {
    Provider(
        transport: transport,
        configuration: ProviderConfiguration(
            decoders: [JSONBodyDecoder(), ProtobufCoder()],
            encoders: [ProtobufCoder(), JSONBodyEncoder()]
        )
    )
}

/// A provider that sends property lists, and takes both.
func propertyListShop(_ transport: some Transport) -> Provider<ShopEntry> {
    Provider(
        transport: transport,
        configuration: ProviderConfiguration(
            decoders: [JSONBodyDecoder(), PropertyListBodyDecoder()],
            encoders: [PropertyListBodyEncoder()]
        )
    )
}

// MARK: Calls

func types(_ shop: Provider<ShopEntry>) async throws {
    try await shop.request(.say("hello"))
    let _: Void = try await shop.request(.say("hello"))
    let receipt: Receipt = try await shop.request(.say("hello"))
    let fare: Fare = try await shop.request(.quoteCall(Quote(from: "Turin")))
    let message = try await shop.request(.quoteCall(Quote(from: "Turin")), as: Message.self)
    let bytes: [UInt8] = try await shop.request(.quoteCall(Quote(from: "Turin")))
    _ = (receipt, fare, message, bytes)
}

func typedEntries(_ shop: Provider<ShopEntry>) async throws {
    let fare = try await shop.request(.quote(Quote(from: "Turin")))
    let cents: Int = fare.cents
    try await shop.request(.tell("hello"))
    for try await price in try await shop.messages(.prices) where price.cents < cents { break }
}

func errors(_ transport: some Transport) async throws -> String? {
    let shop = Provider<ShopEntry>(
        transport: transport,
        configuration: ProviderConfiguration(errorType: ShopError.self)
    )
    do {
        try await shop.request(.say("hello"))
        return nil
    } catch let error as WaybillError {
        return (error.serviceError as? ShopError)?.reason
    }
}
