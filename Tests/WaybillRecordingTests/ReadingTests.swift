import Foundation
import Testing
import WaybillRecording
import WireCore

@testable import class WaybillRecording.RecordingInput
@testable import struct WaybillRecording.RecordingReader

/// Recordings that are read back, filtered and compared.
@Suite("Reading a recording", .timeLimit(.minutes(30))) struct ReadingTests {
    private static let header = #"{"format":"waybill-recording","version":1,"time":0.000000}"#

    private static func recording(_ lines: [String], end: String = "\n") throws -> Recording {
        try Recording(Payload(lines.joined(separator: "\n") + end), name: "wire.jsonl")
    }

    private static let records: [Recording.Record] = [
        .frame(1, "CONNECT", byteCount: 20, at: 1),
        .frame(2, "CONNACK", nil, .inbound, byteCount: 4, at: 2),
        .frame(3, "PUBLISH", "chat/lobby", at: 3),
        .frame(4, "PUBLISH", "chat/lobby", .inbound, at: 4),
        .frame(5, "PUBLISH", "news", .inbound, at: 5),
    ]

    @Test("The contents of a recording are read back")
    func contents() throws {
        let recording = try Recording(Recording(Self.records).contents)
        #expect(recording.records == Self.records)
        #expect(!recording.isTorn && recording.unreadableLineCount == 0)
    }

    @Test("A line that cannot be read is an error with its number, and reading goes on")
    func unreadable() throws {
        let lines = [
            Self.header, Self.records[0].json, "{", #"{"kind":"later"}"#, "", Self.records[1].json,
        ]
        let recording = try Self.recording(lines)
        #expect(recording.records == Array(Self.records[..<2]))
        #expect(recording.unreadableLines.map(\.line) == [3, 5])
        #expect(recording.unreadableLines.map(\.reason) == [.invalidLine, .invalidLine])
        #expect(
            recording.unreadableLines.first?.description
                == "wire.jsonl:3: the line is no JSON object, at byte 2 (invalidLine)"
        )
    }

    @Test("No more than 1,000 errors are kept, and all are counted")
    func manyErrors() throws {
        let recording = try Self.recording([Self.header] + Array(repeating: "x", count: 1_500))
        #expect(recording.unreadableLines.count == 1_000 && recording.unreadableLineCount == 1_500)
    }

    @Test("A last line that was cut is no error, and one without its end is read")
    func torn() throws {
        let json = Self.records[1].json
        for count in 1..<json.utf8.count {
            let cut = String(decoding: json.utf8.prefix(count), as: UTF8.self)
            let recording = try Self.recording([Self.header, Self.records[0].json, cut], end: "")
            #expect(recording.records == [Self.records[0]] && recording.isTorn)
            #expect(recording.unreadableLineCount == 0)
        }
        let whole = try Self.recording([Self.header, Self.records[0].json, json], end: "")
        #expect(whole.records.count == 2 && !whole.isTorn)
    }

    @Test("What has no header is no recording, and a newer format is said to be newer")
    func headers() throws {
        for text in ["", "\n", "x\n", Self.records[0].json + "\n", Self.header] {
            #expect("\(text)") {
                _ = try Recording(Payload(text))
            } throws: { error in
                (error as? RecordingError)?.reason == .notARecording
            }
        }
        let newer = Self.header.replacing("1,", with: "2,")
        for lines in [[newer], [Self.header, Self.records[0].json, newer]] {
            let error = #expect(throws: RecordingError.self) { try Self.recording(lines) }
            #expect(error?.reason == .newerVersion && error?.line == lines.count)
        }
        // Files that were joined.
        let joined = try Self.recording([
            Self.header, Self.records[0].json, Self.header, Self.records[1].json,
        ])
        #expect(joined.records.count == 2 && joined.unreadableLineCount == 0)
    }

    @Test("A line beyond the limit is skipped without being kept, wherever it stands")
    func longLines() throws {
        let long = #"{"kind":"frame","text":"\#(String(repeating: "x", count: 400))"}"#
        let text = [Self.header, long, Self.records[0].json, long].joined(separator: "\n")
        for end in ["", "\n"] {
            let input = RecordingInput(Array((text + end).utf8), path: "wire.jsonl", limit: 300)
            var reader = try RecordingReader(input, path: "wire.jsonl")
            var results: [String] = []
            while true {
                do throws(RecordingError) {
                    guard let record = try reader.next() else { break }
                    results.append(record.name)
                } catch {
                    results.append("\(error.reason.name) \(error.line ?? 0)")
                }
            }
            #expect(results == ["lineTooLong 2", "CONNECT", "lineTooLong 4"])
        }
    }

    @Test("A file is read in parts, at whichever byte they are cut")
    func parts() throws {
        let folder = try RecordingFolder()
        var record = Self.records[2]
        record.body = Payload(String(repeating: "é", count: 50_000))
        let recording = Recording(Array(repeating: record, count: 7))
        try recording.contents.data.write(to: folder.folder.appendingPathComponent("wire.jsonl"))
        #expect(try Recording(path: folder.path).records == recording.records)
    }

    @Test("A missing file, a folder and a file of something else are errors")
    func files() throws {
        let folder = try RecordingFolder()
        func reason(_ path: String) -> RecordingError.Reason? {
            do throws(RecordingError) {
                _ = try Recording(path: path)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(reason(folder.path) == .cannotOpen)
        #expect(reason(folder.folder.path) == .notAFile)
        // A device has no length, although this one gives bytes without end.
        #expect(reason("/dev/zero") == .notARecording)
    }

    // MARK: Filters

    private static func numbers(_ change: (inout Recording.Filter) -> Void) -> [UInt64] {
        var filter = Recording.Filter()
        change(&filter)
        return Recording(records).filtered(filter).records.map(\.number)
    }

    @Test("A filter takes the records that meet each of its conditions")
    func filters() {
        #expect(Self.numbers { _ in } == [1, 2, 3, 4, 5])
        #expect(Self.numbers { $0.kinds = [.state, .frame] } == [1, 2, 3, 4, 5])
        #expect(Self.numbers { $0.kinds = [.state] } == [])
        #expect(Self.numbers { $0.direction = .inbound } == [2, 4, 5])
        #expect(Self.numbers { $0.name = "publish" } == [3, 4, 5])
        #expect(Self.numbers { $0.name = "pub" } == [])
        #expect(Self.numbers { $0.topic = "chat/lobby" } == [3, 4])
        #expect(Self.numbers { $0.topic = "chat/+" } == [3, 4])
        #expect(Self.numbers { $0.topic = "#" } == [3, 4, 5])
        #expect(Self.numbers { $0.topic = "chat" } == [])
        #expect(Self.numbers { $0.topic = "chat/lob+" } == [])
        #expect(Self.numbers { $0.text = "LOBBY" } == [3, 4])
        #expect(Self.numbers { $0.text = "conn" } == [1, 2])
        #expect(Self.numbers { $0.text = "" } == [1, 2, 3, 4, 5])
        #expect(Self.numbers { ($0.from, $0.until) = (.seconds(2), .seconds(4)) } == [2, 3])
        #expect(
            Self.numbers { ($0.direction, $0.topic, $0.from) = (.inbound, "chat/#", .seconds(4)) }
                == [4]
        )
    }

    @Test(
        "A filter's text is found in a body and in a label, and a topic that is a filter matches itself"
    )
    func places() {
        var record = Self.records[0]
        (record.body, record.label, record.topic) = ("the Body", "app-1", "a/+/#b")
        var filter = Recording.Filter()
        for text in ["body", "APP"] {
            filter.text = text
            #expect(filter.matches(record))
        }
        filter = Recording.Filter()
        filter.topic = "a/+/#b"
        #expect(filter.matches(record))
    }

    // MARK: Comparison

    @Test("Recordings that differ in times, numbers, texts and bodies alone are alike")
    func alike() {
        let other = Self.records.map { record in
            var other = record
            (other.number, other.time, other.text) = (record.number + 9, .seconds(99), "other")
            (other.body, other.label) = ("body", "label")
            return other
        }
        let comparison = Recording(Self.records).compared(with: Recording(other))
        #expect(comparison.isAlike && comparison.commonCount == 5)
        #expect(comparison.onlyInFirstCount == 0 && comparison.onlyInSecondCount == 0)
        #expect("\(comparison)" == "5 records in both, 0 only in the first, 0 only in the second")
    }

    @Test("The first difference and the counts are told")
    func different() {
        var other = Self.records
        other[3].byteCount = 11
        other.remove(at: 2)
        let comparison = Recording(Self.records).compared(with: Recording(other))
        #expect(comparison.firstDifference?.index == 2)
        #expect(comparison.firstDifference?.first?.number == 3)
        #expect(comparison.firstDifference?.second?.number == 4)
        #expect(comparison.commonCount == 3)
        #expect(comparison.onlyInFirstCount == 2 && comparison.onlyInSecondCount == 1)
        #expect(
            "\(comparison)" == """
                the first difference is at record 3
                  first:  3.000000 → PUBLISH chat/lobby  [10 bytes]
                  second: 4.000000 ← PUBLISH chat/lobby  [11 bytes]
                3 records in both, 2 only in the first, 1 only in the second
                """
        )
        let shorter = Recording(Self.records).compared(with: Recording())
        #expect(shorter.firstDifference?.second == nil && shorter.onlyInFirstCount == 5)
    }

    @Test("Without bodies a recording can be passed on")
    func redacted() {
        var record = Self.records[0]
        (record.body, record.bodyByteCount) = ("s3cret", 10)
        let text = Recording([record]).redacted.contents.text
        #expect(text?.contains("s3cret") == false && text?.contains("CONNECT") == true)
    }
}
