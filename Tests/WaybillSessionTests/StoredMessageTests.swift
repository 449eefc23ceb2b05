import Foundation
import Testing
import Waybill
import WaybillSession

/// What is kept of a send, and the send that is made of it again.
@Suite("Stored messages", .timeLimit(.minutes(30))) struct StoredMessageTests {
    private static let start = Date(timeIntervalSince1970: 1_000)

    @Test("An expiry is a date, so that the time in the store counts")
    func expiry() throws {
        let message = StoredMessage(topic: "t", body: [], qos: 1, expiry: Self.start + 60)
        let later = try message.request(at: Self.start + 20)
        #expect(later.command[.storedExpiry] == .seconds(40))
        // A whole second at least, because 0 would mean that it is over.
        let last = try message.request(at: Self.start + 59.5)
        #expect(last.command[.storedExpiry] == .seconds(1))
        let error = #expect(throws: WaybillError.self) {
            try message.request(at: Self.start + 60)
        }
        #expect(error?.code == .timedOut)
    }

    @Test("An expiry that is over comes before an option that is unknown: nothing stays for ever")
    func overAndUnknown() {
        let message = StoredMessage(
            topic: "t",
            body: [],
            qos: 1,
            expiry: Self.start,
            options: [StoredOption("test.unknown", .flag(true))]
        )
        let over = #expect(throws: WaybillError.self) {
            try message.request(at: Self.start + 1)
        }
        #expect(over?.code == .timedOut)
        let unknown = #expect(throws: WaybillError.self) {
            try message.request(at: Self.start - 1)
        }
        #expect(unknown?.code == .unsupported && unknown?.option?.description == "test.unknown")
        #expect(!message.isKnown(to: []))
    }

    @Test("An option whose name several keys have is refused before anything is stored")
    func ambiguous() {
        let keys = [OptionKey<Bool>(stored: "test.same"), OptionKey<Bool>(stored: "test.same")]
        let command = EntryCommand.send(SendOption(keys[1], true))
        let error = #expect(throws: WaybillError.self) {
            try StoredMessage(Request(topic: "t", command: command))
        }
        #expect(error?.code == .invalidEntry && error?.topic == "t")
    }

    @Test("A name from a file is shown escaped and cut")
    func hostileName() {
        let name = "a\u{7}\n" + String(repeating: "b", count: 10_000)
        let message = StoredMessage(
            topic: "t",
            body: [],
            qos: 1,
            options: [StoredOption(name, .text("secret"))]
        )
        let error = #expect(throws: WaybillError.self) {
            try message.request(at: Self.start)
        }
        let shown = "\(error.map { "\($0)" } ?? "") \(error?.option?.description ?? "")"
        #expect(shown.utf8.count < 1_000 && !shown.contains("secret"))
        #expect(!shown.unicodeScalars.contains { $0.value < 0x20 })
    }

    @Test("A send whose options are too long to be stored is refused")
    func tooLong() {
        let data = [UInt8](repeating: 0, count: 1 << 20)
        let command = EntryCommand.send(qos: .atLeastOnce, .correlationData(data))
        let error = #expect(throws: WaybillError.self) {
            try StoredMessage(Request(topic: "t", command: command))
        }
        #expect(error?.code == .limitExceeded && error?.topic == "t")
    }

    @Test("Of a send without stored options nothing is encoded")
    func plain() throws {
        for command in [.send(qos: .atLeastOnce), .send(.timeout(.seconds(1)))] as [EntryCommand] {
            let message = try StoredMessage(Request(topic: "t", command: command))
            #expect(message.options == [] && message.storedOptions.bytes.capacity == 0)
        }
    }
}
