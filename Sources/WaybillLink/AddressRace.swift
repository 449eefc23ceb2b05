package import WireCore

/// The race of a host's addresses for a connection (RFC 8305): when each address is tried, and the error if none
/// accepts.
///
/// The race is a value without sockets or clock. Call ``takeDue(at:)`` until it returns nil: at the start, at the
/// ``deadline`` and after each ``noteFailure(_:)``. The first address that connects wins; no further call is needed
/// then.
package struct AddressRace<Address: Sendable>: Sendable {
    /// How an attempt failed.
    package enum Failure: Hashable, Sendable {
        /// The address refused the connection.
        case refused
        /// The system's time limit for the address has passed.
        case timedOut
        /// The system's error number.
        case unreachable(Int32)

        /// The order of meaning: a refusal says more than silence, and silence more than a missing route.
        fileprivate var rank: Int {
            switch self {
            case .refused: 2
            case .timedOut: 1
            case .unreachable: 0
            }
        }
    }

    /// The head start of an attempt before the next one begins: 250 milliseconds (RFC 8305, 5 and 8).
    package static var attemptDelay: Duration { .milliseconds(250) }

    /// The addresses in the order in which they are tried.
    package let addresses: [Address]
    private var nextIndex = 0
    private var failureCount = 0
    private var tellingFailure: Failure?
    /// The time of the next attempt; zero for at once.
    private var due = WireInstant.zero

    /// - Parameters:
    ///   - addresses: The addresses in the resolver's order of preference (RFC 6724).
    ///   - family: Returns the family of an address.
    package init<Family: Hashable>(_ addresses: [Address], family: (Address) -> Family) {
        self.addresses = Self.interleaved(addresses, family: family)
    }

    /// Alternates between the families, beginning with that of the first address (RFC 8305, 4); each family keeps its
    /// order.
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

    /// Takes the next address to try.
    ///
    /// - Parameter now: The current time.
    /// - Returns: The address and its index in ``addresses``; nil if none is due.
    package mutating func takeDue(at now: WireInstant) -> (index: Int, address: Address)? {
        guard nextIndex < addresses.count, due <= now else { return nil }
        defer { nextIndex += 1 }
        due = now.advanced(by: Self.attemptDelay)
        return (nextIndex, addresses[nextIndex])
    }

    /// The time at which the next address is due; nil if none is left.
    package var deadline: WireInstant? { nextIndex < addresses.count ? due : nil }

    /// Notes that an attempt failed; the next address is then due at once.
    package mutating func noteFailure(_ failure: Failure) {
        failureCount += 1
        if failure.rank >= tellingFailure?.rank ?? 0 { tellingFailure = failure }
        due = .zero
    }

    /// The failure of the host after every address has failed; nil while an address may still connect.
    ///
    /// It is the failure with the highest rank, and of several the last one. Addresses that cannot be reached are last
    /// in the resolver's order (RFC 6724, 6) and say the least.
    package var failure: Failure? {
        failureCount == addresses.count ? tellingFailure ?? .unreachable(0) : nil
    }
}
