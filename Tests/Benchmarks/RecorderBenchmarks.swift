import Waybill
import WaybillMQTT
import WaybillRecording

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The cost of a recorder for each frame.
enum RecorderBenchmarks {
    /// An entry that sends a body.
    private struct Entry: EntryType {
        let body: EntryBody
        let command: EntryCommand
        var topic: String? { "benchmark/recorded" }
    }

    /// A recorder to memory or to a file; nil for none.
    private static func recorder(_ kind: String, _ folder: String) throws -> (Recorder?, String) {
        let path = "\(folder)/waybill-benchmark-\(UUID().uuidString).jsonl"
        var options = Recorder.Options()
        // As in an app, but nothing may be missing.
        options.maximumQueueSize = 1 << 28
        switch kind {
        case "memory": return (Recorder(buffer: RecordingBuffer()), path)
        case "file": return (try Recorder(path: path, options: options), path)
        default: return (nil, path)
        }
    }

    private static func remove(_ path: String) {
        for ending in ["", ".1", ".2", ".3"] {
            try? FileManager.default.removeItem(atPath: path + ending)
        }
    }

    /// Logs frames, and prints the time of a call and the processor time of a frame with its line of JSON.
    ///
    /// - Parameters:
    ///   - kind: `memory` or `file`.
    ///   - folder: The folder of the file.
    ///   - count: The number of frames.
    @concurrent
    static func log(_ kind: String, folder: String, _ count: Int) async throws {
        let (made, path) = try recorder(kind, folder)
        defer { remove(path) }
        guard let recorder = made else { return print("no such recorder") }
        var record = WireRecord(
            kind: .frame,
            direction: .outbound,
            text: "PUBLISH topic=benchmark/recorded qos=0 payload=256 bytes",
            byteCount: 279
        )
        (record.name, record.topic) = ("PUBLISH", "benchmark/recorded")
        let before = Usage()
        var calls = 0.0
        for _ in 0..<max(count / 1_000, 1) {
            let start = Usage()
            for _ in 0..<1_000 { recorder.log(record) }
            calls += start.nanoseconds(per: 1)
            await recorder.flush()
        }
        let total = max(count / 1_000, 1) * 1_000
        let cpu = before.processorNanoseconds(per: total)
        print(
            #"{"job": "recorder \#(kind)", "count": \#(total), "call_ns": \#(calls / Double(total)), "#
                + #""cpu_ns_per_message": \#(cpu), "dropped": \#(recorder.status.droppedCount)}"#
        )
    }

    /// Publishes with QoS 0 over a connection that is recorded.
    ///
    /// - Parameters:
    ///   - kind: `none`, `memory` or `file`.
    ///   - port: The port of the broker.
    ///   - folder: The folder of the file.
    ///   - count: The number of messages.
    ///   - size: The size of a message in bytes.
    @concurrent
    static func publish(
        _ kind: String,
        port: Int,
        folder: String,
        _ count: Int,
        size: Int
    ) async throws {
        let (recorder, path) = try recorder(kind, folder)
        defer { remove(path) }
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.wireLogger = recorder
        let transport = try MQTTTransport(
            url: "mqtt://127.0.0.1:\(port)",
            configuration: configuration
        )
        let provider = Provider<Entry>(transport: transport)
        let body = EntryBody.data(Data(repeating: UInt8(ascii: "x"), count: size))
        try await provider.request(Entry(body: body, command: .send(qos: .atLeastOnce)))
        let before = Usage()
        for _ in 0..<count {
            try await provider.request(Entry(body: body, command: .send(qos: .atMostOnce)))
        }
        try await provider.request(Entry(body: body, command: .send(qos: .atLeastOnce)))
        await recorder?.flush()
        before.report("recorded \(kind)", count)
        await transport.shutdown()
    }
}
