import Testing
import TransportTestSupport
import WaybillMQTT
import WaybillRecording
import WaybillTesting
import WireTestSupport

// The examples of the guide's page on recording (`Recording.md`), compiled.

@Suite("Guide: recording", .timeLimit(.minutes(30))) struct RecordingExamples {
    private enum ChatEntry: EntryType {
        case say(String)

        var topic: String? { "chat/lobby" }
        var command: EntryCommand { .send }
        var body: EntryBody {
            switch self {
            case .say(let text): .text(text)
            }
        }
    }

    /// Is compiled and not run: it has no broker.
    private func recording(to path: String) async throws {
        let recorder = try Recorder(path: path)
        var configuration = MQTTConfiguration()
        configuration.wireLogger = recorder
        let transport = try MQTTTransport(
            url: "mqtt://broker.example",
            configuration: configuration
        )
        recorder.observe(transport)
        let chat = Provider<ChatEntry>(transport: transport).logged(recorder)
        try await chat.request(.say("hello"))
    }

    /// Is compiled and not run: it shows each part in the app's way.
    private func showing(_ configuration: inout MQTTConfiguration) async {
        func show(_ records: [Recording.Record]) {}
        let buffer = RecordingBuffer(maximumCount: 10_000, maximumByteCount: 8 << 20)
        configuration.wireLogger = Recorder(buffer: buffer)

        var serial: UInt64 = 0
        for await _ in buffer.arrivals() {
            let snapshot = buffer.snapshot(after: serial)
            serial = snapshot.lastSerial
            show(snapshot.records)
        }
    }

    @Test("What the page records of a mock is read back, filtered and compared")
    func readingBack() async throws {
        let folder = try RecordingFolder()
        let path = folder.path
        let mock = MockTransport().expect(.connect).expect(.send).expect(.send)
        let recorder = try Recorder(path: path)
        recorder.observe(mock)
        let chat = Provider<ChatEntry>(transport: mock).logged(recorder)
        try await chat.request(.say("hello"))
        await mock.shutdown()
        // The states come by a task of their own.
        try await waitUntil { recorder.status.recordCount > 2 }
        recorder.close()

        let recording = try Recording(path: path)
        for error in recording.unreadableLines { print(error) }
        var filter = Recording.Filter()
        filter.kinds = [.request, .receipt]
        filter.topic = "chat/#"
        let calls = recording.filtered(filter)
        for record in calls.records { print(record) }

        let before = Recording(calls.records)
        let comparison = calls.compared(with: before)
        if !comparison.isAlike { print(comparison) }

        #expect(calls.records.map(\.name) == ["send", "send"])
        #expect(calls.records.map(\.kind) == [.request, .receipt])
        #expect(comparison.isAlike)
        #expect(recording.records.contains { $0.kind == .state })
        #expect(!(try folder.text()).contains("hello"))
        #expect(recorder.status.droppedCount == 0 && recorder.status.error == nil)
    }

    @Test("Bodies are recorded only if the options ask for them")
    func bodies() async throws {
        let folder = try RecordingFolder()
        var options = Recorder.Options()
        options.bodies = .shownAlthoughTheyMayHoldSecrets
        let recorder = try Recorder(path: folder.path, options: options)
        let mock = MockTransport().expect(.connect).expect(.send)
        let chat = Provider<ChatEntry>(transport: mock).logged(recorder)
        try await chat.request(.say("hello"))
        recorder.close()
        let recording = try Recording(path: folder.path)
        #expect(recording.records.first?.body?.text == "hello")
        let shared = recording.redacted.contents
        #expect(shared.text?.contains("hello") == false)
    }
}
