import Waybill
import WireCore

/// The messages of a mock that wait for the app to acknowledge them.
struct MockDeliveries: Sendable {
    private struct Delivery: Sendable {
        var id: Message.ID
        var stream: UInt64
        /// True when its acknowledgement covers all messages of its subscription before it (STOMP 1.2, ack `client`).
        var isCumulative: Bool
    }

    private var waiting: [Delivery] = []
    /// The messages that were settled within a transaction, and wait again if that is aborted.
    private var held: [WireName: [Delivery]] = [:]
    private var lastNumber: UInt64 = 0
    /// The open transactions.
    private(set) var transactions: Set<WireName> = []

    /// The number of messages that wait.
    var count: Int { waiting.count }

    /// Notes that a message waits, and names it unless it has a name.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - stream: The number of its subscription.
    ///   - isCumulative: Whether acknowledging it covers the messages before it.
    mutating func hold(_ message: inout Message, of stream: UInt64, isCumulative: Bool) {
        if message.id == nil {
            lastNumber += 1
            message.id = Message.ID(.number(lastNumber))
        }
        guard let id = message.id else { return }
        waiting.append(Delivery(id: id, stream: stream, isCumulative: isCumulative))
    }

    /// True when a message waits.
    func isWaiting(_ id: Message.ID) -> Bool { waiting.contains { $0.id == id } }

    /// Notes what a request that has succeeded does to messages and transactions.
    mutating func note(_ request: Request, by rules: any MockRules) {
        let transaction = rules.transaction(of: request.command)
        if let id = request.command.message {
            if case .part(let name) = transaction { settle(id, name) } else { settle(id, nil) }
            return
        }
        switch transaction {
        case .begin(let name): transactions.insert(WireName(name))
        case .commit(let name): end(WireName(name), isAborted: false)
        case .abort(let name): end(WireName(name), isAborted: true)
        case .part, nil: break
        }
    }

    private mutating func settle(_ id: Message.ID, _ transaction: String?) {
        guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
        let delivery = waiting[index]
        var settled = [delivery]
        if delivery.isCumulative {
            settled = waiting[...index].filter { $0.stream == delivery.stream }
        }
        waiting.removeAll { one in
            settled.contains { $0.id == one.id && $0.stream == one.stream }
        }
        if let transaction { held[WireName(transaction), default: []] += settled }
    }

    private mutating func end(_ name: WireName, isAborted: Bool) {
        transactions.remove(name)
        let settled = held.removeValue(forKey: name) ?? []
        if isAborted { waiting.insert(contentsOf: settled, at: 0) }
    }

    /// Forgets all, when the connection is over.
    mutating func removeAll() {
        waiting = []
        held = [:]
        transactions = []
    }
}
