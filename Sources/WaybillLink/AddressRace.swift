package import WireCore

/// The race of a host's addresses for a connection (RFC 8305): which is tried when, and what is left to say
/// when none accepts.
///
/// A value without sockets or clock: ask ``takeDue(at:)`` until it gives nothing, at the start, at the
/// ``deadline`` and after each ``noteFailure(_:)``. Whoever connects first has won, and there is nothing more
/// to ask.
package struct AddressRace<Address: Sendable>: Sendable {
    /// How an attempt failed.
    package enum Failure: Hashable, Sendable {
        /// The address refused.
        case refused
        /// The system gave up waiting for it.
        case timedOut
        /// The system's error number.
        case unreachable(Int32)

        /// How close it came: an answer, silence, no way there.
        fileprivate var rank: Int {
            switch self {
            case .refused: 2
            case .timedOut: 1
            case .unreachable: 0
            }
        }
    }

    /// How long an attempt is alone before the next one begins: 250 milliseconds (RFC 8305, 5 and 8).
    package static var attemptDelay: Duration { .milliseconds(250) }

    /// The addresses in the order in which they are tried.
    package let addresses: [Address]
    private var nextIndex = 0
    private var failureCount = 0
    private var tellingFailure: Failure?
    /// When the next address is due; zero for at once.
    private var due = WireInstant.zero

    /// - Parameters:
    ///   - addresses: In the order that the resolver prefers (RFC 6724).
    ///   - family: What kind an address is.
    package init<Family: Hashable>(_ addresses: [Address], family: (Address) -> Family) {
        self.addresses = Self.interleaved(addresses, family: family)
    }

    /// The families by turns, beginning with that of the first address (RFC 8305, 4); within each the order
    /// stays as it is.
    private static func interleaved<Family: Hashable>(
        _ addresses: [Address],
        family: (Address) -> Family
    ) -> [Address] {
        var order: [Family] = []
        var lists: [Family: ArraySlice<Address>] = [:]
        for address in addresses {
            let family = family(address)
            if lists[family] == nil { order.append(family) }
            lists[family, default: []].append(address)
        }
        var result: [Address] = []
        while result.count < addresses.count {
            for family in order {
                if let address = lists[family]?.popFirst() { result.append(address) }
            }
        }
        return result
    }

    /// Takes the address to try now.
    ///
    /// - Parameter now: The time.
    /// - Returns: The address and its place in ``addresses``; nil while none is due.
    package mutating func takeDue(at now: WireInstant) -> (index: Int, address: Address)? {
        guard nextIndex < addresses.count, due <= now else { return nil }
        defer { nextIndex += 1 }
        due = now.advanced(by: Self.attemptDelay)
        return (nextIndex, addresses[nextIndex])
    }

    /// When the next address is due, if nothing happens before; nil when none is left.
    package var deadline: WireInstant? { nextIndex < addresses.count ? due : nil }

    /// Notes that an attempt has failed: the next address is due at once.
    package mutating func noteFailure(_ failure: Failure) {
        failureCount += 1
        if failure.rank >= tellingFailure?.rank ?? 0 { tellingFailure = failure }
        due = .zero
    }

    /// How the host failed, once every address has; nil while one may still connect.
    ///
    /// The word of the address that came closest, among equals that of the last. The addresses that cannot be
    /// reached at all come last in the resolver's order (RFC 6724, 6), and say the least.
    package var failure: Failure? {
        failureCount == addresses.count ? tellingFailure ?? .unreachable(0) : nil
    }
}
