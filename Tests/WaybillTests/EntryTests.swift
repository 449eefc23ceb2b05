import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

@Suite("Entries become requests") struct EntryTests {
    let mock = MockTransport().expect(.send).expect(.connect)

    var provider: Provider<TestEntry> { Provider(transport: mock) }

    private func sent(_ body: EntryBody, headers: Headers = [:]) async throws -> Request {
        try await provider.request(.send(body, headers: headers))
        return try #require(mock.requests.last)
    }

    @Test("Each kind of body gives its bytes and content type")
    func bodies() async throws {
        let none = try await sent(.none)
        #expect(none.body.isEmpty && none.contentType == nil)
        let text = try await sent(.text("héllo"))
        #expect(text.body.text == "héllo")
        #expect(text.contentType == "text/plain; charset=utf-8")
        let data = try await sent(.data(Data([0, 1, 255]), contentType: "application/x"))
        #expect(data.body.bytes == [0, 1, 255])
        #expect(data.contentType == "application/x")
        let json = try await sent(.json(Point(x: 1, y: 2)))
        #expect(json.body.text == #"{"x":1,"y":2}"#)
        #expect(json.contentType == "application/json")
        let form = try await sent(.form(["a b": "1&2", "ü": "*-._~"]))
        #expect(form.body.text == "a+b=1%262&%C3%BC=*-._%7E")
        #expect(form.contentType == "application/x-www-form-urlencoded")
    }

    @Test("A JSON encoder of one's own, and any encoder")
    func encoders() async throws {
        struct Upper: BodyEncoder {
            var contentType: String? { "text/upper" }
            func encode<Value: Sendable>(_ value: Value) throws -> Payload? {
                Payload("\(value)".uppercased())
            }
        }
        struct Name: Codable, Sendable { var firstName: String }
        @Sendable func snake() -> JSONEncoder {
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            return encoder
        }
        let json = try await sent(.json(Name(firstName: "ada"), encoder: snake()))
        #expect(json.body.text == #"{"first_name":"ada"}"#)
        let upper = try await sent(.encoded("abc", by: Upper()))
        #expect(upper.body.text == "ABC")
        #expect(upper.contentType == "text/upper")
    }

    @Test("A header of the entry wins over the body's content type; headers keep their order")
    func headers() async throws {
        let request = try await sent(
            .json(Point(x: 1, y: 2)),
            headers: ["b": "1", "Content-Type": "application/point+json", "a": "2", "b": "3"]
        )
        #expect(request.contentType == "application/point+json")
        #expect(request.headers.map { $0.name } == ["b", "a", "b"])
        #expect(request.headers["b"] == "1")
        #expect(request.headers.all("b") == ["1", "3"])
        var headers = request.headers
        headers["b"] = "4"
        #expect(headers.map { $0.name } == ["b", "a"])
        headers["c"] = nil
        headers.removeAll(named: "a")
        #expect(headers.count == 1 && headers["b"] == "4")
    }

    @Test("A body that fails to encode, and an entry without topic, fail before anything is sent")
    func failures() async throws {
        struct Broken: Encodable, Sendable {
            struct Failure: Error {}
            func encode(to encoder: any Encoder) throws { throw Failure() }
        }
        let failure = await expectError(.encodingFailed) {
            try await provider.request(.send(.json(Broken())))
        }
        #expect(failure?.underlying is Broken.Failure)
        #expect(failure?.topic == "t")
        await expectError(.invalidEntry) { try await provider.request(.sendNowhere) }
        await expectError(.invalidEntry) { try await provider.request(.subscribe()) }
        await expectError(.invalidEntry) { try await provider.messages(.send(.none)) }
        #expect(mock.requests.isEmpty)
    }

    @Test("Payloads compare by content, and never print it")
    func payloads() {
        #expect(Payload("abc") == Payload([97, 98, 99]))
        #expect(Payload(Data([97, 98, 99])).hashValue == Payload("abc").hashValue)
        #expect(Payload([0xFF]).text == nil)
        #expect(Payload(Data("é".utf8)).text == "é")
        #expect("\(Payload("secret"))" == "6 bytes")
        #expect("\(Headers(dictionaryLiteral: ("token", "secret")))" == "[token]")
        let request = Request(topic: "t", command: .connect(.userName("u"), .password("secret")))
        #expect(!"\(request)".contains("secret"))
    }
}

@Suite("Replies and decoding") struct DecodingTests {
    private func provider(
        _ mock: MockTransport,
        _ decoders: any BodyDecoder...
    ) -> Provider<TestEntry> {
        Provider(transport: mock, configuration: ProviderConfiguration(decoders: decoders))
    }

    @Test("Text, data, bytes and messages are themselves; values are decoded")
    func direct() async throws {
        let mock = MockTransport().expect(.send, .reply(#"{"x":1,"y":2}"#))
        let provider = Provider<TestEntry>(transport: mock)
        let entry = TestEntry.send(.none)
        let text: String = try await provider.request(entry)
        let data: Data = try await provider.request(entry)
        let bytes: [UInt8] = try await provider.request(entry)
        let message = try await provider.request(entry, as: Message.self)
        let point: Point = try await provider.request(entry)
        #expect(text == #"{"x":1,"y":2}"#)
        #expect(data == Data(text.utf8) && bytes == Array(text.utf8) && message.text == text)
        #expect(point == Point(x: 1, y: 2))
        #expect(mock.requests.allSatisfy { $0.expectsReply })
    }

    @Test("No reply, and one that cannot be decoded, are typed errors")
    func failures() async throws {
        let provider = Provider<TestEntry>(transport: MockTransport().expect(.send))
        await expectError(.decodingFailed) {
            try await provider.request(.send(.none), as: Point.self)
        }
        let rubbish = Provider<TestEntry>(
            transport: MockTransport().expect(.send, .reply("secret rubbish"))
        )
        let error = await expectError(.decodingFailed) {
            try await rubbish.request(.send(.none), as: Point.self)
        }
        #expect(error?.underlying is DecodingError)
        #expect(error.map { "\($0)".contains("secret") } == false)
        let binary = Provider<TestEntry>(
            transport: MockTransport().expect(.send, .reply(Payload([0xFF])))
        )
        await expectError(.decodingFailed) {
            try await binary.request(.send(.none), as: String.self)
        }
    }

    private struct Fixed: BodyDecoder {
        struct Failure: Error {}
        let type: String
        let number: Int?

        func accepts(contentType: String?) -> Bool { contentType == type }

        func decodes(_ type: Any.Type) -> Bool { type == Int.self }

        func decode<Value>(_ type: Value.Type, from message: Message) throws -> Value? {
            guard let number, let value = number as? Value else { throw Failure() }
            return value
        }
    }

    @Test("Decoders that accept the content type come first, then the others in order")
    func order() async throws {
        let mock = MockTransport().expect(.send, .reply("x", contentType: "b"))
        let entry = TestEntry.send(.none)
        let matching = provider(mock, Fixed(type: "a", number: 1), Fixed(type: "b", number: 2))
        #expect(try await matching.request(entry, as: Int.self) == 2)
        let falling = provider(mock, Fixed(type: "a", number: 1), Fixed(type: "b", number: nil))
        #expect(try await falling.request(entry, as: Int.self) == 1)
        let failing = provider(
            mock,
            Fixed(type: "b", number: nil),
            Fixed(type: "a", number: 1),
            Fixed(type: "b", number: 2)
        )
        #expect(try await failing.request(entry, as: Int.self) == 2)
        let none = provider(mock, Fixed(type: "a", number: nil))
        let error = await expectError(.decodingFailed) {
            try await none.request(entry, as: Int.self)
        }
        #expect(error?.underlying is Fixed.Failure)
        let mixed = provider(mock, Fixed(type: "b", number: nil), JSONBodyDecoder())
        let first = await expectError(.decodingFailed) {
            try await mixed.request(entry, as: Int.self)
        }
        #expect(first?.underlying is Fixed.Failure)
    }

    @Test("One decoder and one encoder serve many at once")
    func shared() async throws {
        let mock = MockTransport().expect(.send, .reply(#"{"x":1,"y":2}"#))
        let provider = Provider<TestEntry>(transport: mock)
        try await withThrowingTaskGroup { group in
            for number in 0..<50 {
                group.addTask {
                    let sent = Point(x: number, y: -number)
                    let point: Point = try await provider.request(.send(.json(sent)))
                    #expect(point == Point(x: 1, y: 2))
                }
            }
            try await group.waitForAll()
        }
        let bodies = Set(mock.requests.map { $0.body.text })
        #expect(bodies == Set((0..<50).map { #"{"x":\#($0),"y":\#(-$0)}"# }))
    }
}
