package import WireCore

/// A frame, or some heart-beats, on the wire.
package struct STOMPTrace: Hashable, Sendable {
    package let isOutbound: Bool
    /// The command, `heart-beat`, or `note` for a remark about a received frame.
    package let name: String
    /// The destination; nil without one.
    package let topic: String?
    /// The frame in one line, without secrets or body.
    package let text: String
    /// Its length on the wire in bytes.
    package let byteCount: Int
    /// The body of the frame, shown only if the app asks for it.
    package let body: ByteSlice

    /// The headers whose values may be shown: they identify or route, and hold no secrets.
    ///
    /// An app may have chosen an id, as it chooses destinations. Hiding it here would hide nothing: servers repeat the
    /// id of a subscription within their ids of messages, without which a log of frames cannot be followed.
    private static let shown: [String] = [
        STOMPHeaderName.acceptVersion, STOMPHeaderName.ack, STOMPHeaderName.destination,
        STOMPHeaderName.heartBeat, STOMPHeaderName.id, STOMPHeaderName.messageID,
        STOMPHeaderName.receipt, STOMPHeaderName.receiptID, STOMPHeaderName.subscription,
        STOMPHeaderName.transaction, STOMPHeaderName.version,
    ]

    /// A frame as text: its command, the headers that may be shown, and the length of its body.
    package static func text(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        bodyByteCount: Int
    ) -> String {
        var text = "\(command)"
        for field in headers.fields where shown.contains(where: field.name.hasSameBytes(as:)) {
            text += " \(field.name)=\(field.value.excerpt)"
        }
        if bodyByteCount > 0 { text += " (\(bodyByteCount) bytes)" }
        return text
    }
}
