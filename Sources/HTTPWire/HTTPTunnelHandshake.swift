package import WireCore

/// The client's side of CONNECT, which makes a proxy's connection a tunnel to somewhere else (RFC 9110, 9.3.6).
///
/// | state | what moves it on |
/// | --- | --- |
/// | awaiting | a head with 2xx → open; another one → refused, gathering; violation, end of stream → failed |
/// | gathering | the body's end, its limit, end of stream, ``giveUp()`` → refused |
///
/// What follows the head of a 2xx belongs to the tunnel and is left in the buffer.
package struct HTTPTunnelHandshake: Sendable {
    /// What came of it.
    package enum Outcome: Hashable, Sendable {
        /// The tunnel is there.
        case open
        /// The proxy has answered with another status than 2xx; the body up to the limit.
        case refused(HTTPResponseHead, body: [UInt8])
        /// The proxy broke HTTP/1.1.
        case violation(HTTPViolation)
        /// The proxy closed the connection without an answer.
        case endOfStream
    }

    private struct Refusal: Sendable {
        let head: HTTPResponseHead
        var decoder: HTTPBodyDecoder
        var body: [UInt8] = []

        var outcome: Outcome { .refused(head, body: body) }
    }

    /// How much of a refusal's body is kept: 64 KiB.
    package static var maximumRefusalBody: Int { 65_536 }
    /// How many interim answers may come first.
    private static let maximumInterimCount = 16

    /// The bytes that wait to leave.
    package var outbound = ByteWriter()
    /// What came of it, once it is decided.
    package private(set) var outcome: Outcome?
    private var heads: HTTPHeadDecoder
    private var refusal: Refusal?
    private var interimCount = 0

    /// Asks for a tunnel.
    ///
    /// - Parameters:
    ///   - authority: Host and port of the far end, an IPv6 address in brackets (RFC 9112, 3.2.3).
    ///   - headers: Further fields, such as `Proxy-Authorization`.
    ///   - limits: How large the head of the answer may be.
    /// - Throws: `HTTPEncodingError` for what cannot be sent.
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

    /// Takes from the buffer what belongs to the answer.
    package mutating func receive(_ buffer: inout ReceiveBuffer) {
        guard outcome == nil else { return }
        do throws(HTTPViolation) {
            if refusal == nil { try receiveHead(&buffer) }
            receiveBody(&buffer)
        } catch {
            outcome = .violation(error)
        }
    }

    /// Notes that the proxy has finished writing.
    package mutating func receiveEndOfStream() {
        guard outcome == nil else { return }
        outcome = refusal?.outcome ?? .endOfStream
    }

    /// Waits no longer for the rest of a refusal, if there is one.
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
                // A length or a coding beside it counts for nothing (RFC 9110, 9.3.6).
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
            // What has come of the body is worth more than how it is broken.
            isComplete = true
        }
        self.refusal = refusal
        if isComplete { outcome = refusal.outcome }
    }
}
