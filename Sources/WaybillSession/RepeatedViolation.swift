package import Waybill
import WireCore

/// Finds a peer that breaks the protocol with the same packet on each connection.
///
/// Such a packet belongs to something that the peer keeps, so that connecting again does not help.
package struct RepeatedViolation: Sendable {
    /// The number of connections in a row after which no other follows.
    package static let limit = 3

    private struct Last: Sendable {
        let message: String
        let mark: [UInt8]
        var count: Int
    }

    // Out of line, because few peers break the protocol.
    private var last: Shared<Last>?

    package init() {}

    /// Notes the end of a connection.
    ///
    /// Another cause than a violation changes nothing: the packet may not have come yet.
    ///
    /// - Parameters:
    ///   - cause: The cause; nil if this side ended the connection.
    ///   - mark: What tells the packet from others, such as its first bytes.
    /// - Returns: The cause, as an error that ends the series if the packet has come ``limit`` times.
    package mutating func note(_ cause: WaybillError?, mark: [UInt8]) -> WaybillError? {
        guard let cause, cause.code == .protocolViolation else { return cause }
        var next = Last(message: cause.message, mark: mark, count: 1)
        if let last = last?.value, last.message == next.message, last.mark == mark {
            next.count += last.count
        }
        last = Shared(next)
        guard next.count >= Self.limit else { return cause }
        last = nil
        var final = cause
        final.message += "; the same came on \(Self.limit) connections in a row"
        final.isRepeated = true
        return final
    }
}
