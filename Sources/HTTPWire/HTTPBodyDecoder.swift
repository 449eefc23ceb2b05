package import WireCore

/// How the end of a body is determined (RFC 9112, 6.3).
package enum HTTPBodyFraming: Hashable, Sendable {
    /// A known number of bytes, possibly zero.
    case length(Int)
    /// Chunks with their sizes.
    case chunked
    /// All bytes until the connection ends.
    case untilClose

    /// Reads the framing from the head of a response.
    ///
    /// - Parameters:
    ///   - response: The head.
    ///   - method: The method of the request that it answers.
    /// - Throws: `invalidContentLength`, `unsupportedTransferCoding`.
    package init(
        _ response: HTTPResponseHead,
        to method: String = "GET"
    ) throws(HTTPViolation) {
        let isBodiless = response.status < 200 || response.status == 204 || response.status == 304
        guard !isBodiless, method != "HEAD" else {
            self = .length(0)
            return
        }
        self = try Self.stated(in: response.headers) ?? .untilClose
    }

    /// Reads the framing from the head of a request; without a framing field there is no body.
    ///
    /// - Throws: `invalidContentLength`, `unsupportedTransferCoding`.
    package init(_ request: HTTPRequestHead) throws(HTTPViolation) {
        self = try Self.stated(in: request.headers) ?? .length(0)
    }

    private static func stated(in headers: HTTPHeaders) throws(HTTPViolation) -> HTTPBodyFraming? {
        // Both a length and chunks are a sign of request smuggling, in requests and in responses (RFC 9112, 6.3).
        guard headers.all("content-length").isEmpty || headers.all("transfer-encoding").isEmpty
        else { throw .invalidContentLength }
        let codings = headers.members("transfer-encoding")
        guard codings.isEmpty else {
            guard codings.count == 1, HTTPSyntax.areSameName(codings[0], "chunked") else {
                throw .unsupportedTransferCoding
            }
            return .chunked
        }
        guard !headers.all("content-length").isEmpty else { return nil }
        // Several equal lengths count as one.
        let lengths = Set(headers.members("content-length"))
        guard lengths.count == 1, let length = lengths.first.flatMap({ HTTPSyntax.number($0) })
        else { throw .invalidContentLength }
        return .length(length)
    }
}

/// Takes a body from the front of a receive buffer, piece by piece as it arrives.
///
/// The decoder gathers nothing, so it has no size limit; code that gathers the pieces sets the limit.
package struct HTTPBodyDecoder: Sendable {
    /// A piece of the body.
    package enum Part: Hashable, Sendable {
        case bytes(ByteSlice)
        /// The body is complete; trailer fields may follow chunks (RFC 9112, 7.1.2).
        case end(trailers: HTTPHeaders)
    }

    private enum State: Hashable, Sendable {
        case bytes(left: Int)
        case untilClose
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        case trailers
        case done
    }

    /// The longest line with a chunk's size, including extensions: 4 KiB.
    private static let chunkLineLimit = 4_096

    private var state: State
    private var trailers: HTTPHeadDecoder
    private var failure: HTTPViolation?

    package init(_ framing: HTTPBodyFraming, trailerLimits: HTTPHeadLimits = HTTPHeadLimits()) {
        trailers = HTTPHeadDecoder(limits: trailerLimits)
        state =
            switch framing {
            case .length(let length): .bytes(left: length)
            case .chunked: .chunkSize
            case .untilClose: .untilClose
            }
    }

    /// Whether the end was returned.
    package var isDone: Bool { state == .done }

    /// Takes the next piece.
    ///
    /// - Returns: The piece, or nil when more bytes are needed or the body is complete.
    /// - Throws: `HTTPViolation`, and again at every later call.
    package mutating func next(_ buffer: inout ReceiveBuffer) throws(HTTPViolation) -> Part? {
        if let failure { throw failure }
        do throws(HTTPViolation) {
            return try nextPart(&buffer)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func nextPart(_ buffer: inout ReceiveBuffer) throws(HTTPViolation) -> Part? {
        while true {
            switch state {
            case .done: return nil
            case .untilClose: return take(.max, &buffer)
            case .bytes(let left):
                guard left > 0 else { return end() }
                guard let part = take(left, &buffer) else { return nil }
                return part
            case .chunk(let left):
                guard left > 0 else {
                    state = .chunkEnd
                    continue
                }
                return take(left, &buffer)
            case .chunkSize:
                guard let size = try chunkSize(&buffer) else { return nil }
                state = size == 0 ? .trailers : .chunk(left: size)
            case .chunkEnd:
                if takeLineEnd(&buffer) {
                    state = .chunkSize
                    continue
                }
                guard let line = try line(&buffer, limit: 2) else { return nil }
                guard line.isEmpty else { throw .malformedChunk }
                state = .chunkSize
            case .trailers:
                guard let fields = try trailers.nextTrailers(&buffer) else { return nil }
                state = .done
                return .end(trailers: fields)
            }
        }
    }

    /// Notes that the connection has ended.
    ///
    /// - Returns: The end, if the body lasts until the end of the connection; nil if it was already complete.
    /// - Throws: `incompleteBody`.
    package mutating func receiveEndOfStream() throws(HTTPViolation) -> Part? {
        switch state {
        case .done: return nil
        case .untilClose, .bytes(left: 0): return end()
        default: throw .incompleteBody
        }
    }

    private mutating func end() -> Part {
        state = .done
        return .end(trailers: [:])
    }

    private mutating func take(_ limit: Int, _ buffer: inout ReceiveBuffer) -> Part? {
        let count = min(limit, buffer.count)
        guard count > 0 else { return nil }
        let slice = buffer.slice(at: 0, count: count)
        buffer.consume(count)
        switch state {
        case .bytes(let left): state = .bytes(left: left - count)
        case .chunk(let left): state = .chunk(left: left - count)
        default: break
        }
        return .bytes(slice)
    }

    /// Reads `size [;extensions] CRLF` (RFC 9112, 7.1); at most 15 digits, so that no sum overflows.
    private func chunkSize(_ buffer: inout ReceiveBuffer) throws(HTTPViolation) -> Int? {
        if let size = plainChunkSize(&buffer) { return size }
        guard let line = try line(&buffer, limit: Self.chunkLineLimit) else { return nil }
        let digits = line.prefix { Character(Unicode.Scalar($0)).isHexDigit }
        let rest = line.dropFirst(digits.count).drop { $0 == 0x20 || $0 == 0x09 }
        guard (1...15).contains(digits.count), rest.isEmpty || rest.first == UInt8(ascii: ";"),
            rest.allSatisfy(HTTPSyntax.isValueByte),
            let size = Int(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw .malformedChunk }
        return size
    }

    /// Takes a line that holds only a size, the usual case; returns nil and takes nothing for any other line.
    private func plainChunkSize(_ buffer: inout ReceiveBuffer) -> Int? {
        let found: (size: Int, digits: Int)? = buffer.withUnsafeBytes { bytes in
            var size = 0
            var index = 0
            while index < min(bytes.count, 15) {
                let byte = bytes[index]
                let digit: UInt8
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
                case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
                case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
                case UInt8(ascii: "\r"):
                    let isWhole =
                        index > 0 && index + 1 < bytes.count
                        && bytes[index + 1] == UInt8(ascii: "\n")
                    return isWhole ? (size, index) : nil
                default: return nil
                }
                size = size << 4 | Int(digit)
                index += 1
            }
            return nil
        }
        guard let found else { return nil }
        buffer.consume(found.digits + 2)
        return found.size
    }

    /// Takes a CR LF if it is next.
    private func takeLineEnd(_ buffer: inout ReceiveBuffer) -> Bool {
        let isThere = buffer.withUnsafeBytes { bytes in
            bytes.count >= 2 && bytes[0] == UInt8(ascii: "\r") && bytes[1] == UInt8(ascii: "\n")
        }
        if isThere { buffer.consume(2) }
        return isThere
    }

    /// Takes a line without its end; nil when the end has not arrived yet.
    ///
    /// The end is CR LF. A line feed alone is only allowed after the start line and the fields (RFC 9112, 2.2).
    private func line(
        _ buffer: inout ReceiveBuffer,
        limit: Int
    ) throws(HTTPViolation) -> [UInt8]? {
        let found = buffer.withUnsafeBytes { bytes in
            bytes.prefix(limit).firstIndex(of: UInt8(ascii: "\n")).map { Array(bytes[..<$0]) }
        }
        guard var line = found else {
            guard buffer.count < limit else { throw .malformedChunk }
            return nil
        }
        buffer.consume(line.count + 1)
        guard line.popLast() == UInt8(ascii: "\r") else { throw .malformedChunk }
        return line
    }
}
