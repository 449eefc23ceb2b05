package import WireCore

/// The client side of CONNECT, which turns a proxy's connection into a tunnel (RFC 9110, 9.3.6).
///
/// | state | event → next state |
/// | --- | --- |
/// | awaiting | a head with 2xx → open; another head → refused, gathering; violation, end of stream → failed |
/// | gathering | the body's end, its limit, end of stream, ``giveUp()`` → refused |
///
/// The data after the head of a 2xx belongs to the tunnel and stays in the buffer.
package struct HTTPTunnelHandshake: Sendable {
    package enum Outcome: Hashable, Sendable {
        case open
        /// The proxy answered with another status than 2xx; the body is cut at the limit.
        case refused(HTTPResponseHead, body: [UInt8])
        /// The proxy violated HTTP/1.1.
        case violation(HTTPViolation)
        /// The proxy closed the connection without a response.
        case endOfStream
    }

    private struct Refusal: Sendable {
        let head: HTTPResponseHead
        var decoder: HTTPBodyDecoder
        var body: [UInt8] = []

        var outcome: Outcome { .refused(head, body: body) }
    }

    /// The part of a refusal's body that is kept: 64 KiB.
    package static var maximumRefusalBody: Int { 65_536 }
    /// The number of interim responses that may come first.
    private static let maximumInterimCount = 16

    /// The bytes to send.
    package var outbound = ByteWriter()
    /// The outcome; nil until it is decided.
    package private(set) var outcome: Outcome?
    private var heads: HTTPHeadDecoder
    private var refusal: Refusal?
    private var interimCount = 0

    /// Requests a tunnel.
    ///
    /// - Parameters:
    ///   - authority: Host and port of the destination, an IPv6 address in brackets (RFC 9112, 3.2.3).
    ///   - headers: Further fields, such as `Proxy-Authorization`.
    ///   - limits: The limits of the head of the response.
    /// - Throws: `HTTPEncodingError` for fields that cannot be sent.
    package init(
        to authority: String,
        headers: HTTPHeaders = [:],
        limits: HTTPHeadLimits = HTTPHeadLimits()
    ) throws(HTTPEncodingError) {
        heads = HTTPHeadDecoder(limits: limits)
        var all: HTTPHeaders = ["Host": authority]
        for field in headers { all.append(name: field.name, value: field.value) }
        try HTTPRequestHead(method: "CONNECT", target: authority, headers: all)
            .encode(into: &outbound)
    }

    /// Takes the bytes of the response from the buffer.
    package mutating func receive(_ buffer: inout ReceiveBuffer) {
        guard outcome == nil else { return }
        do throws(HTTPViolation) {
            if refusal == nil { try receiveHead(&buffer) }
            receiveBody(&buffer)
        } catch {
            outcome = .violation(error)
        }
    }

    /// Notes that the proxy has closed its side of the stream.
    package mutating func receiveEndOfStream() {
        guard outcome == nil else { return }
        outcome = refusal?.outcome ?? .endOfStream
    }

    /// Stops waiting for the rest of a refusal, if there is one.
    package mutating func giveUp() {
        guard outcome == nil else { return }
        outcome = refusal?.outcome
    }

    private mutating func receiveHead(_ buffer: inout ReceiveBuffer) throws(HTTPViolation) {
        while let head = try heads.nextResponse(&buffer) {
            if head.isInterim {
                interimCount += 1
                guard interimCount <= Self.maximumInterimCount else {
                    throw .tooManyFields(maximum: Self.maximumInterimCount)
                }
                continue
            }
            guard !(200..<300).contains(head.status) else {
                // A length or a transfer coding in the head is ignored (RFC 9110, 9.3.6).
                outcome = .open
                return
            }
            refusal = Refusal(head: head, decoder: HTTPBodyDecoder(try HTTPBodyFraming(head)))
            return
        }
    }

    /// Gathers the body of a refusal, up to the limit.
    private mutating func receiveBody(_ buffer: inout ReceiveBuffer) {
        guard var refusal else { return }
        let limit = Self.maximumRefusalBody
        var isComplete = false
        do throws(HTTPViolation) {
            while !isComplete, let part = try refusal.decoder.next(&buffer) {
                switch part {
                case .bytes(let slice):
                    slice.withUnsafeBytes { refusal.body += $0.prefix(limit - refusal.body.count) }
                    isComplete = refusal.body.count == limit
                case .end: isComplete = true
                }
            }
        } catch {
            // The received part of the body is kept, although the rest is invalid.
            isComplete = true
        }
        self.refusal = refusal
        if isComplete { outcome = refusal.outcome }
    }
}
