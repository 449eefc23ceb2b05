import Foundation
import Testing
import WaybillRecording
import WireCore
import WireTestSupport

@testable import class WaybillRecording.Recorder

/// The file of a recorder.
@Suite("Recording to a file", .timeLimit(.minutes(30))) struct FileTests {
    private static func read(_ folder: RecordingFolder) throws -> Recording {
        try Recording(path: folder.path, includesRotated: true)
    }

    @Test("What is logged is read back: each value, a number and a time")
    func roundTrip() throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.bodies = .shownAlthoughTheyMayHoldSecrets
        let buffer = RecordingBuffer()
        let recorder = try Recorder(path: folder.path, buffer: buffer, options: options)
        #expect(recorder.bodies == .shownAlthoughTheyMayHoldSecrets)
        var request = WireRecord(kind: .request, direction: .outbound, text: "send t")
        (request.name, request.topic, request.label) = ("send", "t", "app")
        recorder.log(request)
        recorder.log(.frame("PUBLISH", "t", .inbound, byteCount: 12, body: Payload([0xFF])))
        for kind in [WireRecord.Kind.receipt, .message, .failure] {
            recorder.log(WireRecord(kind: kind, direction: .inbound, text: "x"))
        }
        recorder.close()
        let recording = try Self.read(folder)
        // The file has microseconds, as the clock gives them.
        #expect(recording.records == buffer.snapshot().records)
        #expect(recording.records.map(\.number) == [1, 2, 3, 4, 5])
        #expect(
            recording.records.map(\.kind) == [.request, .frame, .receipt, .message, .failure]
        )
        #expect(recording.records[0].label == "app" && recording.records[0].name == "send")
        #expect(recording.records[1].body == Payload([0xFF]))
        #expect(recording.records.allSatisfy { $0.time > .seconds(1_700_000_000) })
        #expect(
            try folder.lines().first?.hasPrefix(#"{"format":"waybill-recording","version":1,"#)
                == true
        )
        let status = recorder.status
        #expect(status.recordCount == 5 && status.writtenCount == 5 && status.droppedCount == 0)
        #expect(status.waitingByteCount == 0 && status.error == nil)
        // After the end nothing is recorded, and closing again does nothing.
        recorder.log(request)
        recorder.close()
        #expect(recorder.status.recordCount == 5)
        #expect(try Self.read(folder).records.count == 5)
    }

    @Test("Only the owner may read the files")
    func permissions() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.maximumFileSize = 1_000
        let recorder = try Recorder(path: folder.path, options: options)
        for _ in 0..<50 { recorder.log(.frame("PUBLISH", "t")) }
        await recorder.flush()
        #expect(try folder.names.count == 4)
        for name in try folder.names {
            let path = folder.folder.appendingPathComponent(name).path
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test(
        "A full file is set aside, the oldest goes, and the rest is read in order",
        arguments: [1, 2, 4]
    )
    func rotation(count: Int) throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        (options.maximumFileSize, options.maximumFileCount) = (2_000, count)
        let recorder = try Recorder(path: folder.path, options: options)
        for _ in 0..<500 { recorder.log(.frame("PUBLISH", "t")) }
        recorder.close()
        let names = ["wire.jsonl"] + (1..<count).map { "wire.jsonl.\($0)" }
        #expect(try folder.names == names)
        for name in names {
            let data = try Data(contentsOf: folder.folder.appendingPathComponent(name))
            #expect(data.count <= 2_000)
        }
        let recording = try Self.read(folder)
        let first = try #require(recording.records.first?.number)
        #expect(recording.records.map(\.number) == Array(first...500))
        #expect(recorder.status.writtenCount == 500 && recorder.status.droppedCount == 0)
    }

    @Test("A record that is longer than a file has a file of its own")
    func longRecord() throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        (options.maximumFileSize, options.maximumFileCount) = (500, 10)
        let recorder = try Recorder(path: folder.path, options: options)
        recorder.log(.frame("PINGREQ"))
        recorder.log(.frame("PUBLISH", String(repeating: "t", count: 100_000)))
        recorder.log(.frame("PINGRESP"))
        recorder.close()
        #expect(try folder.names.count == 3)
        #expect(try Self.read(folder).records.map(\.name) == ["PINGREQ", "PUBLISH", "PINGRESP"])
    }

    @Test("A file that is there is set aside, and an empty one is replaced")
    func earlierFiles() throws {
        let folder = try RecordingFolder()
        for name in ["first", "second"] {
            let recorder = try Recorder(path: folder.path)
            recorder.log(.frame(name))
            recorder.close()
        }
        #expect(try folder.names == ["wire.jsonl", "wire.jsonl.1"])
        #expect(try Self.read(folder).records.map(\.name) == ["first", "second"])
        try Data().write(to: URL(fileURLWithPath: folder.path))
        try Recorder(path: folder.path).close()
        #expect(try folder.names == ["wire.jsonl", "wire.jsonl.1"])
    }

    @Test("A file that is no recording stays where a file would be set aside")
    func otherFilesSetAside() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.maximumFileSize = 1_000
        let other = folder.path + ".2"
        try Data("mine\n".utf8).write(to: URL(fileURLWithPath: other))
        let recorder = try Recorder(path: folder.path, options: options)
        for _ in 0..<50 { recorder.log(.frame("PUBLISH", "t")) }
        await recorder.flush()
        #expect(try folder.text(".2") == "mine\n")
        let error = try #require(recorder.status.error)
        #expect(error.reason == .notARecording && error.path == other)
        #expect(recorder.status.droppedCount > 0)
        // When it is gone, the records go on.
        try FileManager.default.removeItem(atPath: other)
        recorder.log(.frame("PUBLISH", "t"))
        recorder.close()
        #expect(recorder.status.error == nil)
        #expect(try folder.names == ["wire.jsonl", "wire.jsonl.1", "wire.jsonl.2"])
        #expect(try Self.read(folder).records.last?.number == 51)
        // At the start it is an error, too.
        try Data("mine\n".utf8).write(to: URL(fileURLWithPath: folder.path + ".1"))
        #expect(Self.reason(folder.path) == .notARecording)
        #expect(try folder.text(".1") == "mine\n")
    }

    @Test(
        "No more files are renamed than up to the first free name, so that nothing is lost when it is tried again"
    )
    func freeName() throws {
        let folder = try RecordingFolder()
        for name in ["first", "second"] {
            let recorder = try Recorder(path: folder.path)
            recorder.log(.frame(name))
            recorder.close()
        }
        let (newer, older) = (folder.path + ".1", folder.path + ".3")
        try FileManager.default.moveItem(atPath: newer, toPath: older)
        try Recorder(path: folder.path).close()
        #expect(try folder.names == ["wire.jsonl", "wire.jsonl.1", "wire.jsonl.3"])
        #expect(try Recording(path: newer).records.map(\.name) == ["second"])
        #expect(try Recording(path: older).records.map(\.name) == ["first"])
    }

    @Test("A header that was cut is replaced, and what only looks like one is not")
    func cutHeader() throws {
        let folder = try RecordingFolder()
        let url = URL(fileURLWithPath: folder.path)
        try Data(#"{"format":"waybill-recording","vers"#.utf8).write(to: url)
        try Recorder(path: folder.path).close()
        #expect(try folder.names == ["wire.jsonl"])
        #expect(try Self.read(folder).records.isEmpty)
        for text in ["{", #"{"format":"waybill"#, "{\"format\":\"waybill-recording\"\n"] {
            try Data(text.utf8).write(to: url)
            #expect(Self.reason(folder.path) == .notARecording)
            #expect(try folder.text() == text)
        }
    }

    @Test("A file that was set aside and cannot be read keeps no other from being read")
    func unreadableSetAside() throws {
        let folder = try RecordingFolder()
        for name in ["first", "second", "third"] {
            let recorder = try Recorder(path: folder.path)
            recorder.log(.frame(name))
            recorder.close()
        }
        try Data("mine\n".utf8).write(to: URL(fileURLWithPath: folder.path + ".1"))
        let recording = try Self.read(folder)
        #expect(recording.records.map(\.name) == ["first", "third"])
        #expect(recording.unreadableLineCount == 1)
        #expect(recording.unreadableLines.map(\.path) == [folder.path + ".1"])
        #expect(recording.unreadableLines.map(\.reason) == [.notARecording])
    }

    @Test("Nothing is read out of a pipe")
    func pipe() throws {
        let folder = try RecordingFolder()
        try #require(mkfifo(folder.path, 0o600) == 0)
        let descriptor = open(folder.path, O_RDWR | O_NONBLOCK)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(Foundation.write(descriptor, "text", 4) == 4)
        #expect(Self.reason(folder.path) == .notAFile)
        var bytes = [UInt8](repeating: 0, count: 8)
        #expect(Foundation.read(descriptor, &bytes, bytes.count) == 4)
    }

    @Test("A body is cut at its limit, between two characters")
    func bodies() throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        (options.bodies, options.maximumBodySize) = (.shownAlthoughTheyMayHoldSecrets, 5)
        let recorder = try Recorder(path: folder.path, options: options)
        for body in ["abcde", "abcdef", "abcdé", "😀😀"] as [Payload] {
            recorder.log(.frame("PUBLISH", body: body))
        }
        recorder.log(.frame("PUBLISH", body: Payload(Array(repeating: 0x80, count: 9))))
        recorder.close()
        let records = try Self.read(folder).records
        #expect(records.map { $0.body?.text } == ["abcde", "abcde", "abcd", "😀", nil])
        #expect(records.map(\.bodyByteCount) == [nil, 6, 6, 8, 9])
        #expect(records.last?.body?.count == 5)
    }

    // MARK: Failures

    private static func reason(_ path: String) -> RecordingError.Reason? {
        do throws(RecordingError) {
            _ = try Recorder(path: path)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test("A path that no file can have is an error at once")
    func unwritable() throws {
        let folder = try RecordingFolder()
        #expect(Self.reason(folder.path + "/missing/wire.jsonl") == .cannotOpen)
        #expect(Self.reason("") == .cannotOpen)
        #expect(Self.reason(folder.folder.path) == .notAFile)
        #expect(Self.reason("/dev/null") == .notAFile)
        #expect(Self.reason("/dev/full") == .notARecording)
        #expect(["/dev/null", "/dev/full"].allSatisfy(FileManager.default.fileExists))
        // A file of something else stays.
        try Data("mine\n".utf8).write(to: URL(fileURLWithPath: folder.path))
        #expect(Self.reason(folder.path) == .notARecording)
        #expect(try folder.text() == "mine\n")
        try FileManager.default.removeItem(atPath: folder.path)
        // A link that somebody else has put there is not followed.
        let target = folder.folder.appendingPathComponent("target").path
        try FileManager.default.createSymbolicLink(atPath: folder.path, withDestinationPath: target)
        #expect(Self.reason(folder.path) == .notAFile)
        #expect(!FileManager.default.fileExists(atPath: target))
    }

    /// A disk that takes no more than a number of bytes.
    private final class Disk: Sendable {
        private let room: Locked<Int>
        private let failure: Int32

        init(_ room: Int, failure: Int32 = ENOSPC) {
            self.room = Locked(room)
            self.failure = failure
        }

        func set(_ bytes: Int) { room.withLock { $0 = bytes } }

        func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
            let allowed = room.withLock { room in
                let allowed = min(room, count)
                room -= allowed
                return allowed
            }
            guard allowed > 0 else {
                errno = failure
                return -1
            }
            return Foundation.write(descriptor, bytes, allowed)
        }

        func recorder(_ folder: RecordingFolder, _ options: Recorder.Options = .init()) throws
            -> Recorder
        {
            try Recorder(
                path: folder.path,
                options: options,
                now: { .seconds(1) },
                write: { self.write($0, $1, $2) }
            )
        }
    }

    @Test("A full disk is an error at the start, and leaves no file behind")
    func fullAtStart() throws {
        let folder = try RecordingFolder()
        let error = #expect(throws: RecordingError.self) { try Disk(10).recorder(folder) }
        #expect(error?.reason == .diskFull && error?.path == folder.path)
        #expect(try folder.names == [])
    }

    @Test("Records that a full disk does not take are counted, and a line tells their number later")
    func full() async throws {
        let folder = try RecordingFolder()
        let disk = Disk(10_000)
        let recorder = try disk.recorder(folder)
        recorder.log(.frame("first"))
        await recorder.flush()
        // Not enough for a whole line.
        disk.set(40)
        for _ in 0..<10 { recorder.log(.frame("lost")) }
        await recorder.flush()
        #expect(recorder.status.error?.reason == .diskFull)
        #expect(recorder.status.droppedCount == 10 && recorder.status.writtenCount == 1)
        #expect(try folder.text().hasSuffix("\n"))
        disk.set(10_000)
        recorder.log(.frame("last"))
        recorder.close()
        #expect(recorder.status.error == nil && recorder.status.writtenCount == 2)
        let recording = try Self.read(folder)
        #expect(recording.unreadableLineCount == 0 && recording.droppedCount == 10)
        #expect(recording.records.map(\.name) == ["first", "dropped", "last"])
        #expect(recording.records.map(\.number) == [1, 11, 12])
    }

    @Test("A disk that fails is told from one that is full")
    func failing() async throws {
        let folder = try RecordingFolder()
        let disk = Disk(10_000, failure: EIO)
        let recorder = try disk.recorder(folder)
        disk.set(0)
        recorder.log(.frame("lost"))
        await recorder.flush()
        #expect(recorder.status.error?.reason == .diskFailed)
    }

    @Test(
        "A file that another one has replaced is left alone, and this recorder's records are counted as lost"
    )
    func replaced() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.maximumFileSize = 1_000
        let recorder = try Recorder(path: folder.path, options: options)
        recorder.log(.frame("PUBLISH", "t"))
        await recorder.flush()
        try FileManager.default.removeItem(atPath: folder.path)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: folder.path))
        for _ in 0..<50 { recorder.log(.frame("PUBLISH", "t")) }
        await recorder.flush()
        #expect(recorder.status.error?.reason == .replaced)
        #expect(recorder.status.droppedCount > 0)
        #expect(try folder.text() == "mine")
        // A file that is gone is begun again.
        try FileManager.default.removeItem(atPath: folder.path)
        recorder.log(.frame("PUBLISH", String(repeating: "t", count: 1_000)))
        recorder.close()
        #expect(recorder.status.error == nil)
        let recording = try Self.read(folder)
        #expect(recording.droppedCount == recorder.status.droppedCount)
        #expect(recording.records.last?.number == 52)
    }

    // MARK: The queue

    @Test(
        "A full queue drops without waiting, and lines tell how many are missing, where they are missing"
    )
    func fullQueue() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.maximumQueueSize = 4_000
        // The writer waits in the first write after the header.
        let gate = Locked(0)
        let (opened, opening) = (DispatchGroup(), DispatchGroup())
        opened.enter()
        opening.enter()
        let recorder = try Recorder(
            path: folder.path,
            options: options,
            now: { .seconds(1) },
            write: { descriptor, bytes, count in
                let calls = gate.withLock { calls in
                    calls += 1
                    return calls
                }
                if calls == 2 {
                    opened.leave()
                    opening.wait()
                }
                return Foundation.write(descriptor, bytes, count)
            }
        )
        recorder.log(.frame("first"))
        await withCheckedContinuation { continuation in
            opened.notify(queue: .global()) { continuation.resume() }
        }
        for _ in 0..<1_000 { recorder.log(.frame("PUBLISH", "t")) }
        let dropped = recorder.status.droppedCount
        #expect(dropped > 900 && recorder.status.recordCount == 1_001)
        #expect(recorder.status.waitingByteCount < 4_500)
        opening.leave()
        await recorder.flush()
        recorder.log(.frame("last"))
        recorder.close()
        let recording = try Self.read(folder)
        #expect(recording.droppedCount == dropped)
        #expect(recorder.status.writtenCount + dropped == 1_002)
        let names = recording.records.map(\.name)
        #expect(names.first == "first" && names.suffix(2) == ["dropped", "last"])
        // Every number is there, or in the count of a line behind it.
        var number: UInt64 = 0
        for record in recording.records {
            number += UInt64(record.count ?? 1)
            #expect(record.number == number)
        }
    }

    @Test("Many threads write whole lines, each number once and in order")
    func concurrent() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.maximumQueueSize = 1 << 30
        let recorder = try Recorder(path: folder.path, options: options)
        await withTaskGroup { group in
            for writer in 0..<8 {
                group.addTask {
                    for number in 0..<1_000 {
                        recorder.log(.frame("PUBLISH", "\(writer)", text: "\(number)"))
                    }
                }
            }
        }
        await recorder.flush()
        let recording = try Self.read(folder)
        #expect(recording.records.map(\.number) == Array(1...8_000))
        for writer in 0..<8 {
            let texts = recording.records.filter { $0.topic == "\(writer)" }.map(\.text)
            #expect(texts == (0..<1_000).map { "\($0)" })
        }
    }

    @Test("A recorder that is released writes everything that it was given")
    func released() async throws {
        let folder = try RecordingFolder()
        var recorder: Recorder? = try Recorder(path: folder.path)
        for _ in 0..<1_000 { recorder?.log(.frame("PUBLISH", "t")) }
        recorder = nil
        // The queue keeps it until everything is written.
        try await waitUntil { try Self.read(folder).records.count == 1_000 }
    }
}
