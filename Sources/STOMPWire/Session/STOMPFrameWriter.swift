package import WireCore

/// Writes frames into the outbound buffer, and traces them.
package struct STOMPFrameWriter: Sendable {
    /// The version of the connection; nil until it is agreed.
    package var version: STOMPVersion?
    /// The bytes for the peer.
    package var outbound = ByteWriter()
    /// Whether frames are recorded for ``takeTraces()``.
    package let isTracing: Bool
    private var traces: [STOMPTrace] = []

    package init(isTracing: Bool) {
        self.isTracing = isTracing
    }

    /// Writes a frame with its body, which is copied once.
    ///
    /// - Throws: `STOMPSendError.encoding`; nothing was written then.
    package mutating func write(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        hasLength: Bool = true
    ) throws(STOMPSendError) {
        let start = outbound.count
        do {
            try STOMPFrameEncoder.encode(
                command,
                headers,
                body: body,
                hasLength: hasLength,
                version: version,
                into: &outbound
            )
        } catch {
            throw .encoding(error)
        }
        guard isTracing else { return }
        let text = STOMPTrace.text(command, headers, bodyByteCount: body.wireByteCount)
        var shown = ByteSlice.empty
        body.withWireBytes { shown = ByteSlice(copying: $0) }
        note(
            text,
            command,
            headers.first(STOMPHeaderName.destination),
            byteCount: outbound.count - start,
            isOutbound: true,
            body: shown
        )
    }

    /// Encodes a frame that is sent later by ``append(_:)``.
    ///
    /// - Throws: `STOMPSendError.encoding`.
    func frame(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        _ body: some WireBytes,
        _ hasLength: Bool,
        receipt: UInt64?
    ) throws(STOMPSendError) -> STOMPHeldFrames.Frame {
        var writer = STOMPFrameWriter(isTracing: isTracing)
        writer.version = version
        try writer.write(command, headers, body: body, hasLength: hasLength)
        return STOMPHeldFrames.Frame(
            bytes: writer.outbound.takeSlice(),
            traces: writer.traces,
            receipt: receipt,
            isDroppable: command == .send && receipt != nil
        )
    }

    /// Appends a frame that was encoded before.
    mutating func append(_ frame: STOMPHeldFrames.Frame) {
        outbound.append(frame.bytes)
        traces += frame.traces
    }

    package mutating func writeHeartBeat() {
        outbound.append(UInt8(ascii: "\n"))
        if isTracing { noteHeartBeats(byteCount: 1, isOutbound: true) }
    }

    /// Records a received frame, while tracing is on.
    package mutating func noteReceived(_ frame: STOMPFrame, byteCount: Int) {
        guard isTracing else { return }
        note(
            frame.description,
            frame.command,
            frame.headers.destination,
            byteCount: byteCount,
            isOutbound: false,
            body: frame.body
        )
    }

    /// Records heart-beats, while tracing is on.
    package mutating func noteHeartBeats(byteCount: Int, isOutbound: Bool) {
        guard isTracing else { return }
        append("heart-beat", name: "heart-beat", byteCount: byteCount, isOutbound: isOutbound)
    }

    /// Records a remark about a received frame, while tracing is on.
    package mutating func noteRemark(_ text: String) {
        guard isTracing else { return }
        append(text, name: "note", byteCount: 0, isOutbound: false)
    }

    private mutating func note(
        _ text: String,
        _ command: STOMPCommand,
        _ topic: String?,
        byteCount: Int,
        isOutbound: Bool,
        body: ByteSlice
    ) {
        append(
            text,
            name: command.description,
            topic: topic,
            byteCount: byteCount,
            isOutbound: isOutbound,
            body: body
        )
    }

    private mutating func append(
        _ text: String,
        name: String,
        topic: String? = nil,
        byteCount: Int,
        isOutbound: Bool,
        body: ByteSlice = .empty
    ) {
        traces.append(
            STOMPTrace(
                isOutbound: isOutbound,
                name: name,
                topic: topic,
                text: text,
                byteCount: byteCount,
                body: body
            )
        )
    }

    /// Takes the recorded frames.
    package mutating func takeTraces() -> [STOMPTrace] {
        defer { traces = [] }
        return traces
    }
}
