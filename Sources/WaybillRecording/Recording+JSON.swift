import Waybill
import WireCore

/// The first line of a file.
struct RecordingHeader: Equatable {
    static let format = "waybill-recording"
    /// The bytes with which each header that this package writes begins.
    static let beginning = Array(#"{"format":"\#(format)""#.utf8)
    /// The version that this package writes, and the highest that it reads.
    ///
    /// New keys and kinds need no new version, since readers ignore those that they do not know.
    static let version: UInt64 = 1

    var version = Self.version
    /// The time when the file was begun.
    var time: Duration
    /// A random number that tells the file from others.
    var id = UInt64.random(in: 0 ... .max)

    func write(to writer: inout JSONWriter) {
        writer.open()
        writer.add("format", Self.format)
        writer.add("version", raw: "\(version)")
        writer.add("time", raw: RecordingTime.text(time))
        writer.add("id", raw: "\(id)")
        writer.close()
    }
}

/// What a line of a file is.
enum RecordingLine: Equatable {
    case header(RecordingHeader)
    case record(Recording.Record)
    /// A kind that this version does not know.
    case unknown

    /// Reads a line.
    ///
    /// - Throws: `JSONFault`.
    init(_ line: [UInt8]) throws(JSONFault) {
        var scanner = try JSONScanner(line)
        var fields = RecordingFields()
        try scanner.object { (key, scanner) throws(JSONFault) in try fields.read(key, &scanner) }
        self = try fields.line()
    }
}

/// The values of a line, while it is read.
private struct RecordingFields {
    private var record = Recording.Record(number: 0, time: .zero, kind: .frame, name: "", text: "")
    private var kind: String?
    private var format: String?
    private var version: UInt64?
    private var id: UInt64 = 0

    mutating func read(_ key: String, _ scanner: inout JSONScanner) throws(JSONFault) {
        // As if the key were missing.
        if try scanner.null() { return }
        switch key {
        case "format": format = try scanner.string()
        case "version": version = try scanner.integer()
        case "id": id = try scanner.integer() ?? 0
        case "time":
            guard let time = RecordingTime.time(try scanner.number()) else { throw .value(key) }
            record.time = time
        case "number":
            guard let number = try scanner.integer() else { throw .value(key) }
            record.number = number
        case "direction":
            let direction = try scanner.string()
            guard direction.hasSameBytes(as: "in") || direction.hasSameBytes(as: "out") else {
                throw .value(key)
            }
            record.direction = direction.hasSameBytes(as: "in") ? .inbound : .outbound
        case "kind": kind = try scanner.string()
        case "name": record.name = try scanner.string()
        case "topic": record.topic = try scanner.string()
        case "bytes": record.byteCount = try count(key, &scanner)
        case "label": record.label = try scanner.string()
        case "text": record.text = try scanner.string()
        case "body": record.body = Payload(try scanner.string())
        case "body64":
            guard let bytes = Base64.decode(try scanner.string().utf8) else { throw .value(key) }
            record.body = Payload(bytes)
        case "bodyBytes": record.bodyByteCount = try count(key, &scanner)
        case "count": record.count = try count(key, &scanner)
        default: try scanner.skip()
        }
    }

    private func count(_ key: String, _ scanner: inout JSONScanner) throws(JSONFault) -> Int {
        guard let count = try scanner.integer().flatMap(Int.init(exactly:)) else {
            throw .value(key)
        }
        return count
    }

    func line() throws(JSONFault) -> RecordingLine {
        guard let kind else {
            guard let format, format.hasSameBytes(as: RecordingHeader.format) else {
                throw .value("kind")
            }
            guard let version, version > 0 else { throw .value("version") }
            return .header(RecordingHeader(version: version, time: record.time, id: id))
        }
        guard let known = Recording.Kind.all.first(where: { $0.name.hasSameBytes(as: kind) }) else {
            return .unknown
        }
        var record = record
        record.kind = known
        return .record(record)
    }
}

extension Recording.Record {
    /// The record as one line of JSON, as files have it, without the end of the line.
    ///
    /// The page on recording lists the keys.
    public var json: String {
        var writer = JSONWriter()
        write(to: &writer)
        return String(decoding: writer.bytes.dropLast(), as: UTF8.self)
    }

    func write(to writer: inout JSONWriter) {
        writer.open()
        writer.add("time", raw: RecordingTime.text(time))
        writer.add("number", raw: "\(number)")
        if let direction { writer.add("direction", direction == .inbound ? "in" : "out") }
        writer.add("kind", kind.name)
        writer.add("name", name)
        if let topic { writer.add("topic", topic) }
        if byteCount > 0 { writer.add("bytes", raw: "\(byteCount)") }
        if let label { writer.add("label", label) }
        writer.add("text", text)
        if let body {
            if let text = body.text {
                writer.add("body", text)
            } else {
                writer.add("body64", Base64.encode(body.bytes))
            }
        }
        if let bodyByteCount { writer.add("bodyBytes", raw: "\(bodyByteCount)") }
        if let count { writer.add("count", raw: "\(count)") }
        writer.close()
    }
}
