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
        note(text, byteCount: outbound.count - start, isOutbound: true, body: shown)
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
        if isTracing { note("heart-beat", byteCount: 1, isOutbound: true) }
    }

    /// Records a received frame, while tracing is on.
    package mutating func noteReceived(_ frame: STOMPFrame, byteCount: Int) {
        guard isTracing else { return }
        note(frame.description, byteCount: byteCount, isOutbound: false, body: frame.body)
    }

    /// Records a note about received data, while tracing is on.
    package mutating func noteReceived(_ text: String, byteCount: Int) {
        guard isTracing else { return }
        note(text, byteCount: byteCount, isOutbound: false)
    }

    private mutating func note(
        _ text: String,
        byteCount: Int,
        isOutbound: Bool,
        body: ByteSlice = .empty
    ) {
        let trace = STOMPTrace(
            isOutbound: isOutbound,
            text: text,
            byteCount: byteCount,
            body: body
        )
        traces.append(trace)
    }

    /// Takes the recorded frames.
    package mutating func takeTraces() -> [STOMPTrace] {
        defer { traces = [] }
        return traces
    }
}
