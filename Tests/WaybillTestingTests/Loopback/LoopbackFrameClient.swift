import TransportTestSupport
import WaybillLink
import WaybillTesting
import WireCore

/// A STOMP 1.2 client that sends and receives single frames, without heart-beats.
final class LoopbackFrameClient {
    let stream: any ByteStream
    private var rest: [UInt8] = []
    /// True when a read has found the end of the connection.
    private(set) var isOver = false

    init(_ bench: LoopbackBench) throws {
        stream = bench.connect(.stomp)
        try send("CONNECT", ["accept-version:1.2", "host:h"])
        _ = try frames()
    }

    func send(_ command: String, _ headers: [String] = [], _ body: String = "") throws {
        let text = ([command] + headers).joined(separator: "\n") + "\n\n" + body + "\0"
        try Array(text.utf8).withUnsafeBytes { _ = try stream.write($0) }
    }

    func subscribe(_ id: String, to destination: String, ack: String = "client") throws {
        try send("SUBSCRIBE", ["id:\(id)", "destination:\(destination)", "ack:\(ack)"])
    }

    func send(_ body: String, to destination: String, _ headers: [String] = []) throws {
        try send("SEND", ["destination:\(destination)"] + headers, body)
    }

    /// The received frames, line by line. The body is the last line.
    func frames() throws -> [[String]] {
        while !isOver {
            var space = [UInt8](repeating: 0, count: 65_536)
            let outcome = try space.withUnsafeMutableBytes { try stream.read(into: $0) }
            guard case .bytes(let count) = outcome else {
                isOver = outcome == .endOfStream
                break
            }
            rest += space[..<count]
        }
        var frames: [[String]] = []
        while let end = rest.firstIndex(of: 0) {
            let text = String(decoding: rest[..<end], as: UTF8.self)
            rest.removeSubrange(...end)
            frames.append(
                text.drop { $0 == "\n" }.split(separator: "\n", omittingEmptySubsequences: false)
                    .map(String.init)
            )
        }
        return frames
    }

    /// The received messages: the subscription, the body, and a mark for a redelivery.
    func messages() throws -> [String] {
        try frames().filter { $0.first == "MESSAGE" }.map { frame in
            let again = frame.contains("redelivered:true") ? " again" : ""
            return "\(Self.value(of: "subscription", in: frame)): \(frame.last ?? "")\(again)"
        }
    }

    static func value(of header: String, in frame: [String]) -> String {
        frame.first { $0.hasPrefix("\(header):") }.map { String($0.dropFirst(header.count + 1)) }
            ?? ""
    }
}
