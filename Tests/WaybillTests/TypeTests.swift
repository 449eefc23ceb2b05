import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message as a generator writes it: not `Codable`.
private struct FareProto: SerializedMessage, Equatable {
    struct Malformed: Error {}
    var cents: UInt8

    init(cents: UInt8) { self.cents = cents }

    init(serializedBytes: [UInt8]) throws {
        guard serializedBytes.count == 2, serializedBytes[0] == 8 else { throw Malformed() }
        cents = serializedBytes[1]
    }

    func serializedBytes() -> [UInt8] { [8, cents] }
}

/// Another type of the same family.
private struct NameProto: SerializedMessage, Equatable {
    var name: String

    init(name: String) { self.name = name }

    init(serializedBytes: [UInt8]) { name = String(decoding: serializedBytes, as: UTF8.self) }

    func serializedBytes() -> [UInt8] { Array(name.utf8) }
}

/// A type of no family.
private struct Stranger: Sendable {}

/// A type of the main actor, as every type is in a module with that default isolation.
@MainActor private struct Shown: @MainActor Decodable {
    var cents: Int
}

/// An error of the main actor.
@MainActor private struct ShownError: Error, @MainActor Decodable {
    var cents: Int
}

/// A type that holds one of the main actor's, and belongs to it for that.
@MainActor private struct Shelf: @MainActor Decodable {
    var all: [Shown]
}

@Suite("Types of replies and bodies") struct TypeTests {
    let mock = MockTransport().expect(.connect).expect(.send, .reply(#"{"cents":7}"#))
        .expect(.subscribe)

    var shop: Provider<ShopEntry> { Provider(transport: mock) }

    @Test("Nothing and a receipt ask for no reply; a message is itself")
    func receipts() async throws {
        try await shop.request(.say("a"))
        let _: Void = try await shop.request(.say("b"))
        let receipt: Receipt = try await shop.request(.say("c"))
        let perhaps: Receipt? = try await shop.request(.say("d"))
        try await shop.request(.open, as: Void.self)
        // Without a named type the result is a receipt.
        #expect(((try? await shop.request(.say("e"))) == nil) == false)
        #expect(receipt.topic == "shop/say" && perhaps?.topic == "shop/say")
        #expect(mock.requests.allSatisfy { !$0.expectsReply })
        let message = try await shop.request(.quoteCall(Quote(from: "x")), as: Message.self)
        #expect(message.text == #"{"cents":7}"#)
        #expect(mock.requests.last?.expectsReply == true)
        try await types(shop)
    }

    @Test(
        "A reply that there cannot be, and a type that nothing makes, fail before anything is sent"
    )
    func early() async throws {
        await expectError(.unsupported) { try await shop.request(.open, as: Fare.self) }
        await expectError(.unsupported) { try await shop.request(.open, as: String.self) }
        let error = await expectError(.invalidEntry) {
            try await shop.request(.say("a"), as: Stranger.self)
        }
        #expect(error?.message.contains("Stranger") == true && error?.topic == "shop/say")
        await expectError(.invalidEntry) {
            try await shop.messages(.priceFeed, as: Stranger.self)
        }
        let protobuf = Provider<ShopEntry>(
            transport: mock,
            configuration: ProviderConfiguration(decoders: [ProtobufCoder()])
        )
        await expectError(.invalidEntry) {
            try await protobuf.request(.say("a"), as: Fare.self)
        }
        let unencoded = await expectError(.encodingFailed) {
            try await Provider<TestEntry>(transport: mock).request(.send(.value(Stranger())))
        }
        #expect(unencoded.flatMap(\.underlying).map { "\($0)" }?.contains("Stranger") == true)
        #expect(mock.requests.isEmpty)
    }

    /// Everything that decodes a type, with one that the compiler cannot refuse.
    private nonisolated func refuse<Value: Sendable>(_ type: Value.Type) async throws {
        let errors = [
            await expectError(.invalidEntry) { try await shop.request(.say("a"), as: type) },
            await expectError(.invalidEntry) { try await shop.messages(.priceFeed, as: type) },
            await expectError(.invalidEntry) {
                try await shop.request(TypedEntry<ShopEntry, Value>(.say("a")))
            },
        ]
        for error in errors { #expect(error?.message.contains("nonisolated") == true) }
        let codes = LockedBox<[WaybillError.Code?]>([])
        shop.request(of: type, entry: .say("a")) { result in
            guard case .failure(let error) = result else { return codes.change { $0.append(nil) } }
            codes.change { $0.append((error as? WaybillError)?.code) }
        }
        shop.subscribe(of: type, entry: .priceFeed) { update in
            guard case .ended(let error) = update else { return codes.change { $0.append(nil) } }
            codes.change { $0.append(error?.code) }
        }
        try await waitUntil { codes.value.count == 2 }
        #expect(codes.value == [.invalidEntry, .invalidEntry])
        #expect(mock.requests.isEmpty)
    }

    @Test("A type whose conformance to Decodable belongs to an actor is refused off the actor")
    nonisolated func isolatedConformances() async throws {
        try await refuse(Shown.self)
        try await refuse([Shown].self)
        try await refuse(Shown?.self)
        try await refuse([String: [Shown]].self)
        try await refuse(Shelf.self)
        #expect(JSONBodyDecoder().decodes([String: [Fare?]].self))
        #expect(!JSONBodyDecoder().decodes(Stranger.self))
    }

    @Test("It is refused on that actor, too, which may not be where it is decoded") @MainActor
    func isolatedConformancesOnTheirActor() async throws {
        try await refuse(Shown.self)
        try await refuse([Shown].self)
        #expect(!JSONBodyDecoder().decodes(Shown.self))
        #expect(JSONBodyDecoder().decodes(Fare.self))
    }

    @Test("An error body is not decoded to a type of an actor")
    func isolatedErrors() async throws {
        let refused = MockTransport().expect(.send, .reply(#"{"cents":7}"#))
        let shop = Provider<ShopEntry>(
            transport: refused,
            configuration: ProviderConfiguration(errorType: ShownError.self)
        )
        // The reply would be a `ShownError`.
        let error = await expectError(.decodingFailed) {
            try await shop.request(.say("a"), as: [Fare].self)
        }
        #expect(error?.serviceError == nil)
    }

    @Test("One coder serves a family of types that are not Codable, beside JSON")
    func family() async throws {
        let mock = MockTransport()
            .expect(.subscribe)
            .expect(
                .send,
                .reply(Payload([8, 9]), contentType: "application/x-protobuf"),
                .reply("Ada", contentType: "application/x-protobuf"),
                .reply(#"{"cents":7}"#, contentType: "application/json"),
                .reply(Payload([1]), contentType: "application/x-protobuf")
            )
        let shop = protobufShop(mock)
        let entry = ShopEntry.say("a")
        #expect(try await shop.request(entry) == FareProto(cents: 9))
        #expect(try await shop.request(entry) == NameProto(name: "Ada"))
        #expect(try await shop.request(entry) == Fare(cents: 7))
        let error = await expectError(.decodingFailed) {
            try await shop.request(entry, as: FareProto.self)
        }
        #expect(error?.underlying is FareProto.Malformed)
        let fares = try await shop.messages(.priceFeed, as: FareProto.self)
        mock.push(Payload([8, 1]), to: "shop/prices", contentType: "application/x-protobuf")
        var iterator = fares.makeAsyncIterator()
        #expect(try await iterator.next() == FareProto(cents: 1))
    }

    @Test("Property lists, beside JSON and alone, in the formats that there are")
    func propertyLists() async throws {
        let type = "application/x-plist"
        let mock = MockTransport().expect(.subscribe).expect(.send)
        let shop = propertyListShop(mock)
        let fares = try await shop.messages(.priceFeed, as: Fare.self)
        var iterator = fares.makeAsyncIterator()
        for format in [PropertyListDecoder.PropertyListFormat.binary, .xml] {
            let encoder = PropertyListBodyEncoder {
                let encoder = PropertyListEncoder()
                encoder.outputFormat = format
                return encoder
            }
            let body = try #require(try encoder.encode(Fare(cents: 7)))
            let start = format == .xml ? "<?xml" : "bplist00"
            #expect(String(decoding: body.bytes, as: UTF8.self).hasPrefix(start))
            mock.push(body, to: "shop/prices", contentType: "Application/X-Plist; charset=binary")
            #expect(try await iterator.next() == Fare(cents: 7))
            // Without a content type the decoder comes in its turn, after the one that accepts the message.
            mock.push(body, to: "shop/prices")
            #expect(try await iterator.next() == Fare(cents: 7))
        }
        mock.push(#"{"cents":8}"#, to: "shop/prices", contentType: "application/json")
        #expect(try await iterator.next() == Fare(cents: 8))
        mock.push("rubbish", to: "shop/prices", contentType: type)
        await expectError(.decodingFailed) { try await iterator.next() }

        try await shop.request(.quoteCall(Quote(from: "x")))
        let sent = try #require(mock.requests.last)
        #expect(sent.contentType == type)
        let received = Message(topic: "t", body: sent.body, contentType: type)
        #expect(
            try PropertyListBodyDecoder().decode(Quote.self, from: received) == Quote(from: "x")
        )
        #expect(try PropertyListBodyEncoder().encode(Stranger()) == nil)
        #expect(!PropertyListBodyDecoder().decodes(Stranger.self))
        #expect(!PropertyListBodyDecoder().decodes(Shown.self))
        #expect(try PropertyListBodyDecoder().decode(Stranger.self, from: received) == nil)
        #expect(!PropertyListBodyDecoder().accepts(contentType: "application/x-plists"))
        await expectError(.encodingFailed) {
            try await Provider<TestEntry>(transport: mock)
                .request(.send(.encoded("text", by: PropertyListBodyEncoder())))
        }
    }

    @Test("Raw messages come by their type, too, after the interceptors and undecoded")
    func rawMessages() async throws {
        struct Louder: Interceptor {
            func receive(
                _ message: Message,
                context: InterceptorContext
            ) async throws -> Message {
                var louder = message
                louder.body = Payload((message.text ?? "").uppercased())
                return louder
            }
        }
        let mock = MockTransport().expect(.subscribe)
        for shop in [shop(mock), shop(mock).intercepted(Louder())] {
            let messages = try await shop.messages(.priceFeed, as: Message.self)
            let typed: Messages<Message> = try await shop.messages(TypedEntry(.priceFeed))
            var iterators = [messages.makeAsyncIterator(), typed.makeAsyncIterator()]
            mock.push(
                Message(
                    topic: "shop/prices",
                    body: "not json",
                    headers: ["k": "v"],
                    contentType: "text/plain"
                )
            )
            for index in iterators.indices {
                let message = try #require(try await iterators[index].next())
                #expect(message.text?.lowercased() == "not json")
                #expect(message.contentType == "text/plain" && message.headers["k"] == "v")
            }
        }
    }

    private func shop(_ mock: MockTransport) -> Provider<ShopEntry> { Provider(transport: mock) }

    @Test("A handler takes values of a decoder of one's own, of a reply and of messages")
    func handlers() async throws {
        let mock = MockTransport().expect(.subscribe)
            .expect(.send, .reply(Payload([8, 9]), contentType: "application/x-protobuf"))
        let shop = protobufShop(mock)
        let fares = LockedBox<[UInt8?]>([])
        shop.request(of: FareProto.self, entry: .say("a")) { result in
            fares.change { $0.append((try? result.get())?.cents) }
        }
        try await waitUntil { fares.value == [9] }
        #expect(mock.requests.last?.expectsReply == false)
        let prices = LockedBox<[UInt8?]>([])
        let feed = shop.request(of: FareProto.self, entry: .priceFeed) { result in
            prices.change { $0.append((try? result.get())?.cents) }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        let updates = LockedBox<[UInt8?]>([])
        let subscription = shop.subscribe(of: FareProto.self, entry: .priceFeed) { update in
            if case .message(let fare) = update { updates.change { $0.append(fare.cents) } }
            if case .failure = update { updates.change { $0.append(nil) } }
        }
        try await waitUntil { mock.subscriptionCount == 2 }
        for bytes in [[8, 1], [1], [8, 2]] as [[UInt8]] {
            mock.push(Payload(bytes), to: "shop/prices", contentType: "application/x-protobuf")
        }
        try await waitUntil { prices.value.count == 3 && updates.value.count == 3 }
        #expect(prices.value == [1, nil, 2] && updates.value == [1, nil, 2])
        feed.cancel()
        subscription.cancel()
    }

    private func sent(
        _ body: EntryBody,
        _ encoders: any BodyEncoder...
    ) async throws -> Request {
        let provider = Provider<TestEntry>(
            transport: mock,
            configuration: ProviderConfiguration(encoders: encoders)
        )
        try await provider.request(.send(body))
        return try #require(mock.requests.last)
    }

    @Test("A body that leaves the format to the provider goes to the first encoder that knows it")
    func encoders() async throws {
        let proto = EntryBody.value(FareProto(cents: 3))
        let binary = try await sent(proto, ProtobufCoder(), JSONBodyEncoder())
        #expect(binary.body.bytes == [8, 3] && binary.contentType == "application/x-protobuf")
        #expect(try await sent(proto, JSONBodyEncoder(), ProtobufCoder()).body.bytes == [8, 3])
        let json = try await sent(.value(Fare(cents: 3)), ProtobufCoder(), JSONBodyEncoder())
        #expect(json.body.text == #"{"cents":3}"# && json.contentType == "application/json")
        let snake = JSONBodyEncoder {
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            return encoder
        }
        struct Name: Encodable, Sendable { var firstName = "Ada" }
        #expect(try await sent(.value(Name()), snake).body.text == #"{"first_name":"Ada"}"#)
        #expect(try await sent(.json(Name()), snake).body.text == #"{"firstName":"Ada"}"#)
        #expect(
            try await sent(.encoded(FareProto(cents: 4), by: ProtobufCoder())).body.bytes == [8, 4]
        )
        await expectError(.encodingFailed) {
            try await sent(.encoded(Fare(cents: 4), by: ProtobufCoder()))
        }
    }

    @Test("An entry with a type tied to it gives that type")
    func typed() async throws {
        let fare = try await shop.request(.quote(Quote(from: "Turin")))
        #expect(fare == Fare(cents: 7))
        #expect(mock.requests.last?.body.text == #"{"from":"Turin"}"#)
        let prices = try await shop.messages(.prices)
        mock.push(#"{"cents":1}"#, to: "shop/prices")
        var iterator = prices.makeAsyncIterator()
        #expect(try await iterator.next()?.cents == 1)
        try await shop.request(.tell("hello"))
        #expect(mock.requests.last?.expectsReply == false)
        mock.push(#"{"cents":0}"#, to: "shop/prices")
        let listening = Task { try await typedEntries(shop) }
        try await waitUntil { mock.subscriptionCount == 2 }
        mock.push(#"{"cents":0}"#, to: "shop/prices")
        try await listening.value
    }
}

@Suite("Errors of the service's own type") struct ServiceErrorTests {
    private func refusal(_ body: Payload, _ contentType: String?) -> WaybillError {
        let headers: Headers = contentType.map { ["Content-Type": $0] } ?? [:]
        let answer = HTTPRefusal(status: 409, reason: "Conflict", headers: headers, body: body)
        return WaybillError(.rejected, "the server refused", underlying: answer)
    }

    private struct ProtoError: SerializedMessage, Error {
        var number: UInt8
        init(serializedBytes: [UInt8]) throws {
            guard let first = serializedBytes.first else { throw FareProto.Malformed() }
            number = first
        }
        func serializedBytes() -> [UInt8] { [number] }
    }

    @Test("The body of a refusal is decoded to the type of the configuration")
    func configured() async throws {
        let error = refusal(#"{"reason":"sold out"}"#, "application/problem+json")
        #expect(try await errors(MockTransport().expect(.send, .failure(error))) == "sold out")
        let subscribing = Provider<ShopEntry>(
            transport: MockTransport().expect(.subscribe, .failure(error)),
            configuration: ProviderConfiguration(errorType: ShopError.self)
        )
        let found = await expectError(.rejected) { try await subscribing.messages(.priceFeed) }
        #expect(found?.serviceError as? ShopError == ShopError(reason: "sold out"))
        let other = refusal("sold out", nil)
        #expect(try await errors(MockTransport().expect(.send, .failure(other))) == nil)
    }

    @Test("Interceptors see it, too, before they decide on a retry")
    func intercepted() async throws {
        struct Retrying: Interceptor {
            func retry(
                _ request: Request,
                after error: WaybillError,
                context: InterceptorContext
            ) async -> RetryDecision {
                guard error.serviceError as? ShopError == ShopError(reason: "later") else {
                    return .noOpinion
                }
                return .retry(count: 1, delay: .zero)
            }
        }
        let error = refusal(#"{"reason":"later"}"#, "application/json")
        let mock = MockTransport().expect(.send, .failure(error), .success)
        let shop = Provider<ShopEntry>(
            transport: mock,
            configuration: ProviderConfiguration(errorType: ShopError.self)
        ).intercepted(Retrying())
        try await shop.request(.say("a"))
        #expect(mock.requests.count == 2)
    }

    @Test("A type at the call, by any decoder; nil where there is nothing of the type")
    func atTheCall() {
        let json = refusal(#"{"reason":"sold out"}"#, "application/json")
        #expect(json.serviceError == nil)
        #expect(json.serviceError(as: ShopError.self)?.reason == "sold out")
        #expect(json.serviceError(as: String.self) == #"{"reason":"sold out"}"#)
        #expect(json.serviceError(as: Fare.self) == nil)
        let binary = refusal(Payload([4]), "application/x-protobuf")
        #expect(
            binary.serviceError(as: ProtoError.self, decoders: [ProtobufCoder()])?.number == 4
        )
        #expect(refusal(Payload(), nil).serviceError(as: String.self) == nil)
        #expect(WaybillError(.timedOut, "late").serviceError(as: String.self) == nil)
    }

    @Test("A reply that is an error in the place of what was asked for is a refusal")
    func replies() async throws {
        let mock = MockTransport().expect(.send, .reply(#"{"reason":"sold out"}"#), .reply("?"))
        let shop = Provider<ShopEntry>(
            transport: mock,
            configuration: ProviderConfiguration(errorType: ShopError.self)
        )
        let quote = TypedEntry<ShopEntry, Fare>.quote(Quote(from: "Turin"))
        let error = await expectError(.rejected) { try await shop.request(quote) }
        #expect(error?.serviceError as? ShopError == ShopError(reason: "sold out"))
        await expectError(.decodingFailed) { try await shop.request(quote) }
    }
}

@Suite("Sending many, as in the guide") struct SendingExampleTests {
    @Test("The examples do what the page says")
    func examples() async throws {
        let mock = MockTransport().expect(.send)
        let board = Provider<BoardEntry>(transport: mock)
        #expect(try await enqueueing([1, 2, 3], to: board).topic == "board")
        #expect(mock.requests.map { $0.body.text } == ["1", "2", "3", "done"])
        #expect(try await sendingSequence([4, 5], to: board) == 2)
    }
}
