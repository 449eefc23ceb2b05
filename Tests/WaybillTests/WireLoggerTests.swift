import Foundation
import Testing
import Waybill

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

    @Test(
        "What cannot be written is lost, and what comes when there is room again is written in whole"
    )
    func lost() throws {
        let one = WireRecord(kind: .message, direction: .inbound, text: "one")
        // No descriptor at all.
        StandardErrorWireLogger(prefix: "wire", descriptor: -1).log(one)

        // A pipe that is full and takes nothing.
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
