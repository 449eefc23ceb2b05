import Foundation
import Testing
import Waybill
import WaybillTesting

@Suite("Wire loggers") struct WireLoggerTests {
    @Test("Standard error gets one line for each record, without control characters")
    func standardError() {
        let pipe = Pipe()
        let logger = StandardErrorWireLogger(
            prefix: "wire",
            descriptor: pipe.fileHandleForWriting.fileDescriptor
        )
        logger.log(WireRecord(kind: .frame, direction: .outbound, text: "é a\nb\u{1B}[2J\u{9B}c"))
        logger.log(WireRecord(kind: .message, direction: .inbound, text: "two"))
        let text = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        #expect(text == "wire → é a\\u{a}b\\u{1b}[2J\\u{9b}c  [0 bytes]\nwire ← two\n")
    }

    @Test("A body is in the line where the record has one, and in no description")
    func bodies() {
        func record(_ body: Payload?) -> WireRecord {
            WireRecord(kind: .message, direction: .inbound, text: "t", body: body)
        }
        #expect(record(nil).line == "← t")
        #expect(record("a\n\u{1B}[31m").line == "← t  a\\u{a}\\u{1b}[31m")
        #expect(record(Payload([0, 255])).line == "← t  <00 ff>")
        // Cut off after a whole character.
        let long = String(repeating: "é", count: 3_000)
        #expect(record(Payload("x" + long)).line == "← t  x\(long.prefix(2_047)) …")
        #expect("\(record("s3cret"))" == "← t")
    }

    @Test("A logger is shown bodies when it asks for them, and by default never")
    func askedFor() async throws {
        let records = LockedBox([WireRecord]())
        let logger = ClosureWireLogger { record in records.change { $0.append(record) } }
        #expect(logger.bodies == .hidden)
        let mock = MockTransport().expect(.send, .reply("answer")).expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock)
        for bodies in [WireLogBodies.hidden, .shownAlthoughTheyMayHoldSecrets] {
            let logged =
                bodies == .hidden
                ? provider.logged(logger) : provider.logged(logger, bodies: bodies)
            records.change { $0 = [] }
            let _: String = try await logged.request(.send(.text("question")))
            let messages = try await logged.messages(.subscribe())
            mock.push("news", to: "t")
            var iterator = messages.makeAsyncIterator()
            _ = try await iterator.next()
            let shown = records.value.compactMap { $0.body?.text }
            #expect(shown == (bodies == .hidden ? [] : ["question", "answer", "news"]))
        }
    }

    @Test("A pipe without a reader ends no process")
    func brokenPipe() throws {
        let pipe = Pipe()
        try pipe.fileHandleForReading.close()
        let logger = StandardErrorWireLogger(
            prefix: "wire",
            descriptor: pipe.fileHandleForWriting.fileDescriptor
        )
        let before = signal(SIGPIPE, SIG_DFL)
        defer { signal(SIGPIPE, before) }
        for _ in 0..<3 { logger.log(WireRecord(kind: .message, direction: .inbound, text: "x")) }
        var pending = sigset_t()
        sigpending(&pending)
        #expect(sigismember(&pending, SIGPIPE) == 0)
    }

    @Test(
        "What cannot be written is lost, and what comes when there is room again is written in whole"
    )
    func lost() throws {
        let one = WireRecord(kind: .message, direction: .inbound, text: "one")
        // -1 is not a descriptor.
        StandardErrorWireLogger(prefix: "wire", descriptor: -1).log(one)

        // A full pipe, which takes no bytes.
        let pipe = Pipe()
        let (input, output) = (
            pipe.fileHandleForWriting.fileDescriptor, pipe.fileHandleForReading.fileDescriptor
        )
        try #require(fcntl(input, F_SETFL, O_NONBLOCK) == 0)
        let filling = [UInt8](repeating: UInt8(ascii: "."), count: 4096)
        var filled = 0
        while case let count = write(input, filling, filling.count), count > 0 { filled += count }
        try #require(filled > 0 && errno == EAGAIN)
        let logger = StandardErrorWireLogger(prefix: "wire", descriptor: input)
        logger.log(one)
        var drained = [UInt8](repeating: 0, count: filled + 100)
        var count = read(output, &drained, drained.count)
        #expect(count == filled && drained[..<filled].allSatisfy { $0 == UInt8(ascii: ".") })

        logger.log(WireRecord(kind: .message, direction: .inbound, text: "two"))
        count = read(output, &drained, drained.count)
        #expect(String(decoding: drained[..<max(count, 0)], as: UTF8.self) == "wire ← two\n")
    }
}
