import Foundation
import Testing
import Waybill
import WireTestSupport

extension OptionName {
    /// An option of an app's own that is stored.
    fileprivate static let level = OptionKey<Int>(stored: "test.level")
    fileprivate static let small = OptionKey<UInt8>(stored: "test.small")
    fileprivate static let urgency = OptionKey<Urgency>(stored: "test.urgency")
    /// One that is not stored.
    fileprivate static let fleeting = OptionKey<Int>("test.fleeting")
    /// Two keys with one name.
    fileprivate static let twice = OptionKey<Bool>(stored: "test.twice")
    fileprivate static let twiceAgain = OptionKey<Bool>(stored: "test.twice")
}

private enum Urgency: String, StorableOptionValue {
    case low, high
}

@Suite("Options that are stored", .timeLimit(.minutes(30))) struct StoredOptionTests {
    private static let every: [StoredOption] = [
        StoredOption("", .text("")), StoredOption("a", .integer(-2)),
        StoredOption("b", .flag(false)),
        StoredOption("bytes", .bytes([UInt8](repeating: 7, count: 300))),
        StoredOption("c", .text("é\u{0}")), StoredOption("z", .flag(true)),
    ]

    // MARK: The encoding

    @Test("The bytes, which must never change: other versions read them")
    func bytes() throws {
        let options: [StoredOption] = [
            StoredOption("b", .integer(-2)), StoredOption("a", .flag(true)),
            StoredOption("d", .bytes([UInt8](repeating: 9, count: 130))),
            StoredOption("c", .text("é")),
        ]
        let expected =
            ("01 0161 01 01 0162 02 FFFFFFFFFFFFFFFE 0163 03 02 C3A9 0164 04 8201" as Hex).bytes
            + [UInt8](repeating: 9, count: 130)
        #expect(StoredOptions(options).bytes == expected)
        #expect(
            try StoredOptions(checking: expected).options == options.sorted { $0.name < $1.name }
        )
        #expect(StoredOptions([]).bytes == [])
        #expect(try StoredOptions(checking: []).options == [])
    }

    @Test("All kinds come back, sorted by their bytes; of two with one name the last one counts")
    func roundTrip() throws {
        let encoded = StoredOptions([StoredOption("a", .flag(true))] + Self.every.reversed())
        #expect(encoded.options == Self.every)
        #expect(try StoredOptions(checking: encoded.bytes) == encoded)
    }

    @Test(
        "Bytes that break the rules are refused",
        arguments: [
            "01", "02", "02 0161 01 01", "00 0161 01 01",
            // A name twice, and names in another order.
            "01 0161 01 01 0161 01 01", "01 0162 01 01 0161 01 01",
            // A flag of 2, an unknown kind, texts and names that are not UTF-8.
            "01 0161 01 02", "01 0161 00 01", "01 0161 05 01", "01 0161 03 01 FF", "01 01FF 01 01",
            // Lengths beyond the end, and with more bytes than they need.
            "01 FFFFFFFFFFFFFFFF7F", "01 FFFFFFFFFFFFFFFFFF01", "01 0161 04 FFFFFFFFFFFFFFFF7F",
            "01 0161 04 05 01", "01 8100 61 01 01", "01 0161 04 8000",
            // Cut short, and with a rest.
            "01 01", "01 0161", "01 0161 01", "01 0161 02 00000000000000", "01 0161 01 01 00",
        ] as [Hex]
    )
    func refused(_ hex: Hex) {
        #expect(throws: StoredOptionsError.self) { try StoredOptions(checking: hex.bytes) }
    }

    @Test("Another format is told from damage, and a size above 1 MiB is refused unread")
    func limits() {
        #expect(throws: StoredOptionsError.unknownFormat(2)) { try StoredOptions(checking: [2]) }
        let long = [StoredOption("a", .bytes([UInt8](repeating: 0, count: 1 << 20)))]
        #expect(throws: StoredOptionsError.tooLong) {
            try StoredOptions(checking: StoredOptions(long).bytes)
        }
        let fits = [StoredOption("a", .bytes([UInt8](repeating: 0, count: (1 << 20) - 7)))]
        #expect(throws: Never.self) { try StoredOptions(checking: StoredOptions(fits).bytes) }
    }

    @Test(
        "What is accepted of changed bytes has exactly these bytes",
        arguments: [UInt64(1), 2, 3]
    )
    func hostile(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let whole = StoredOptions(Self.every).bytes
        var accepted = 0
        for round in 0..<5_000 {
            var bytes = whole
            if round.isMultiple(of: 4) {
                bytes.removeLast(Int(random.next() % UInt64(whole.count)))
            }
            for _ in 0...random.next() % 3 {
                bytes[Int(random.next() % UInt64(min(bytes.count, 40)))] = UInt8(
                    truncatingIfNeeded: random.next()
                )
            }
            guard let options = try? StoredOptions(checking: bytes) else { continue }
            accepted += 1
            #expect(StoredOptions(options.options).bytes == bytes)
        }
        #expect(accepted > 0 && accepted < 5_000)
    }

    // MARK: From a command and back

    @Test("Of a command, the options with stored keys are kept, and come back by their names")
    func command() throws {
        let command = EntryCommand.send(
            qos: .atLeastOnce,
            .timeout(.seconds(1)),
            SendOption(.small, 3),
            SendOption(.fleeting, 4),
            SendOption(.level, -1),
            SendOption(.urgency, .high),
            .responseTopic("r"),
            .correlationData([1, 2])
        )
        let stored = try command.storedOptions { _ in false }
        #expect(
            stored.options == [
                StoredOption("correlationData", .bytes([1, 2])),
                StoredOption("responseTopic", .text("r")),
                StoredOption("test.level", .integer(-1)), StoredOption("test.small", .integer(3)),
                StoredOption("test.urgency", .text("high")),
            ]
        )
        // One allocation, of the bytes that are needed.
        #expect(stored.bytes == StoredOptions(stored.options).bytes)
        #expect(stored.bytes.capacity < stored.bytes.count + 32)
        var again = EntryCommand.send(qos: .atLeastOnce)
        #expect(again.add(stored) == nil)
        var expected = command
        expected[.timeout] = nil
        expected[.fleeting] = nil
        #expect(again == expected)
        #expect(try command.storedOptions { $0 !== OptionName.small }.options.count == 1)
        let plain = EntryCommand.send(.timeout(.seconds(1)), SendOption(.fleeting, 4))
        #expect(try plain.storedOptions { _ in false }.isEmpty)
    }

    @Test("An unknown name, and a value that its key cannot have, are told by the name")
    func unknown() {
        _ = [OptionName.small, .level, .urgency]
        for option in [
            StoredOption("test.nobody", .flag(true)), StoredOption("test.small", .integer(300)),
            StoredOption("test.small", .integer(-1)), StoredOption("test.small", .text("3")),
            StoredOption("test.urgency", .text("highest")), StoredOption("timeout", .integer(1)),
        ] {
            var command = EntryCommand.send
            let options = StoredOptions([option, StoredOption("test.level", .integer(1))])
            #expect(command.add(options) == option.name)
        }
    }

    @Test("A name that two keys have is unknown, and neither key is stored")
    func ambiguous() throws {
        let both = EntryCommand.send(SendOption(.twice, true), SendOption(.twiceAgain, true))
        #expect(throws: StoredOptionsError.self) { try both.storedOptions { _ in false } }
        for key in [OptionName.twice, .twiceAgain] {
            let command = EntryCommand.send(SendOption(key, true))
            #expect(throws: StoredOptionsError.ambiguous(key)) {
                try command.storedOptions { _ in false }
            }
            #expect(try command.storedOptions { $0 === key }.isEmpty)
            #expect(!key.knows(StoredOption("test.twice", .flag(true))))
        }
        let options = StoredOptions([StoredOption("test.twice", .flag(true))])
        var command = EntryCommand.send
        #expect(command.add(options) == "test.twice")
        #expect(OptionName.level.knows(StoredOption("test.level", .integer(1))))
        #expect(!OptionName.level.knows(StoredOption("test.level", .flag(true))))
    }

    @Test("Options that are too long for a store are refused before they are encoded")
    func tooLong() {
        let command = EntryCommand.send(.correlationData([UInt8](repeating: 0, count: 1 << 20)))
        #expect(throws: StoredOptionsError.tooLong) { try command.storedOptions { _ in false } }
    }

    @Test("Each type of integer takes the values that it can have, and no others")
    func integers() {
        func expectAll<Value: StorableOptionValue & FixedWidthInteger>(_ type: Value.Type) {
            for value in [Value.min, 0, 1, .max] {
                #expect(Value(storedValue: value.storedValue) == value)
            }
            #expect(Value(storedValue: .text("1")) == nil && Value(storedValue: .flag(true)) == nil)
        }
        expectAll(Int.self)
        expectAll(Int8.self)
        expectAll(Int16.self)
        expectAll(Int32.self)
        expectAll(Int64.self)
        expectAll(UInt.self)
        expectAll(UInt8.self)
        expectAll(UInt16.self)
        expectAll(UInt32.self)
        expectAll(UInt64.self)
        #expect(Int8(storedValue: .integer(128)) == nil && UInt8(storedValue: .integer(256)) == nil)
        #expect(
            UInt16(storedValue: .integer(-1)) == nil && UInt32(storedValue: .integer(-1)) == nil
        )
        // The greatest numbers of 64 bits have the same bits as negative ones.
        #expect(
            UInt64(storedValue: .integer(-1)) == .max && UInt(storedValue: .integer(-1)) == .max
        )
    }

    // MARK: Messages

    @Test("A message comes through the coding of an app's own store, whatever options it has")
    func coding() throws {
        let message = StoredMessage(topic: "t", body: [1], qos: 2, options: Self.every)
        let coded = try JSONEncoder().encode(message)
        #expect(try JSONDecoder().decode(StoredMessage.self, from: coded) == message)
        let unknownKind = #"{"name": "a", "moment": 1}"#
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(StoredOption.self, from: Data(unknownKind.utf8))
        }
    }

    @Test("Options compare by the bytes of their texts")
    func comparing() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(StoredOption(composed, .flag(true)) != StoredOption(decomposed, .flag(true)))
        #expect(StoredOption.Value.text(composed) != .text(decomposed))
        #expect(
            StoredOption.Value.text("1") != .integer(1)
                && StoredOption.Value.flag(true) != .integer(1)
        )
        let message = StoredMessage(topic: "t", body: [], qos: 1, options: Self.every)
        #expect(
            message == StoredMessage(topic: "t", body: [], qos: 1, options: Self.every.reversed())
        )
    }
}
