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

    @Test("What cannot be written is lost, and nothing else happens")
    func lost() {
        StandardErrorWireLogger(prefix: "wire", descriptor: -1)
            .log(WireRecord(kind: .message, direction: .inbound, text: "one"))
    }
}
