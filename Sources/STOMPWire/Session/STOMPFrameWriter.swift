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
    /// - Throws: `STOMPEncodingError`; nothing was written then.
    package mutating func write(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes
    ) throws(STOMPEncodingError) {
        let start = outbound.count
        try STOMPFrameEncoder.encode(
            command,
            headers,
            body: body,
            version: version,
            into: &outbound
        )
        guard isTracing else { return }
        let text = STOMPTrace.text(command, headers, bodyByteCount: body.wireByteCount)
        var shown = ByteSlice.empty
        body.withWireBytes { shown = ByteSlice(copying: $0) }
        note(text, byteCount: outbound.count - start, isOutbound: true, body: shown)
    }

    /// Encodes a frame that is sent later by ``append(_:_:)``.
    ///
    /// - Returns: The frame, and the traces to record when it is sent.
    /// - Throws: `STOMPEncodingError`.
    func frame(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes
    ) throws(STOMPEncodingError) -> (ByteSlice, [STOMPTrace]) {
        var writer = STOMPFrameWriter(isTracing: isTracing)
        writer.version = version
        try writer.write(command, headers, body: body)
        return (writer.outbound.takeSlice(), writer.traces)
    }

    /// Appends a frame that was encoded before.
    mutating func append(_ bytes: ByteSlice, _ traces: [STOMPTrace]) {
        outbound.append(bytes)
        self.traces += traces
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
