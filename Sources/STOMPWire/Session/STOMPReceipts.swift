package import WireCore

/// A call that waits for the outcome of a request; the core stores it and returns it with the outcome.
package protocol STOMPCall: AnyObject, Sendable {}

/// The requested receipts that have not arrived, by number.
///
/// A receipt finds its call by hashing. A call whose time limit passes comes from a heap of deadlines.
package struct STOMPReceipts: Sendable {
    private struct Waiting: Sendable {
        let call: any STOMPCall
        /// The destination of the request: some servers name it in their refusal, and not the receipt.
        let destination: String?
        /// The id of the subscription that the request makes.
        let subscription: String?
        /// Whether only a RECEIPT completes the request.
        let isRequired: Bool
    }

    private var calls: [UInt64: Waiting] = [:]
    /// Requests that were sent and whose calls were withdrawn.
    ///
    /// They take room in the window until the server answers or their time limit passes.
    private var withdrawn: Set<UInt64> = []
    /// The number of the last request that was sent; later ones wait for room in the window.
    private var lastSent: UInt64 = 0
    /// The number of requests that were sent and whose receipts have not arrived.
    package private(set) var inFlightCount = 0
    /// The number of each call, for withdrawals; thousands of calls may be withdrawn at once.
    private var numbers: [ObjectIdentifier: UInt64] = [:]
    private var heap = DeadlineHeap()
    /// The numbers of the waiting SUBSCRIBEs, by the ids of their subscriptions.
    private var subscribing: [WireName: UInt64] = [:]
    /// The numbers of the receipts whose ids callers have chosen; other ids are the numbers themselves.
    ///
    /// An id stays until its receipt has come, also when nothing waits for it any more: another request with the id
    /// would take the late receipt for its own.
    private var chosen: [WireName: UInt64] = [:]
    /// The chosen ids, by number.
    private var chosenIDs: [UInt64: WireName] = [:]
    /// The number of chosen ids whose calls wait.
    private var chosenCallCount = 0

    /// The number of chosen ids that may stay without a call; then no further id can be chosen.
    package static let overdueLimit = 1_000

    /// The number of the next receipt to request.
    package private(set) var nextNumber: UInt64 = 1

    package init() {}

    /// The number of receipts that have not arrived.
    package var count: Int { calls.count }

    /// The number of stored deadlines, including those of answered receipts.
    package var deadlineCount: Int { heap.count }

    /// The waiting calls, in the order of their requests.
    package var waiting: [any STOMPCall] {
        calls.sorted { $0.key < $1.key }.map(\.value.call)
    }

    /// The earliest time limit of a call; nil if no call waits.
    package var earliestDeadline: WireInstant? { heap.first?.time }

    /// Takes the next number, for a receipt without a call.
    package mutating func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    /// Why a caller cannot choose an id; nil if it can.
    package func fault(of id: String) -> STOMPSendError? {
        // The numbers are this side's.
        if id.isEmpty || Self.plainNumber(id) != nil || chosen[WireName(id)] != nil {
            return .receiptTaken
        }
        let overdueCount = chosen.count - chosenCallCount
        return overdueCount < Self.overdueLimit ? nil : .receiptsOverdue
    }

    /// Whether a request was sent.
    func isSent(_ number: UInt64) -> Bool { number <= lastSent }

    /// The number that an id is, as this side writes numbers; nil for another text.
    package static func plainNumber(_ id: String) -> UInt64? {
        guard let number = UInt64(id), String(number) == id else { return nil }
        return number
    }

    /// Finds the number of a receipt that has arrived.
    ///
    /// - Parameters:
    ///   - number: The id, if it is a number.
    ///   - id: The id as text, read only if callers have chosen ids.
    /// - Returns: The number; nil for an unknown receipt.
    package func number(_ number: UInt64?, _ id: @autoclosure () -> String?) -> UInt64? {
        guard !chosen.isEmpty else { return number }
        if let id = id(), let found = chosen[WireName(id)] { return found }
        guard let number, chosenIDs[number] == nil else { return nil }
        return number
    }

    /// Forgets the chosen id of a receipt that has come, or of a request that is not sent any more.
    mutating func releaseID(_ number: UInt64) {
        guard !chosenIDs.isEmpty, let id = chosenIDs.removeValue(forKey: number) else { return }
        chosen[id] = nil
    }

    /// Adds a call that waits for ``nextNumber``, or for an id without a ``fault(of:)``, and takes that number.
    ///
    /// - Complexity: O(log n).
    package mutating func add(
        _ call: any STOMPCall,
        to destination: String? = nil,
        making subscription: String? = nil,
        isRequired: Bool = false,
        as id: String? = nil,
        deadline: WireInstant
    ) {
        let number = takeNumber()
        if let id {
            chosen[WireName(id)] = number
            chosenIDs[number] = WireName(id)
            chosenCallCount += 1
        }
        calls[number] = Waiting(
            call: call,
            destination: destination,
            subscription: subscription,
            isRequired: isRequired
        )
        if let subscription { subscribing[WireName(subscription)] = number }
        numbers[ObjectIdentifier(call)] = number
        heap.add(number, at: deadline)
    }

    /// Notes that a request was sent; requests are sent in the order of their numbers.
    package mutating func noteSent(_ number: UInt64) {
        lastSent = number
        if calls[number] != nil { inFlightCount += 1 }
    }

    /// Whether a call still waits for a receipt.
    package func isWaiting(_ number: UInt64) -> Bool { calls[number] != nil }

    /// Ends the wait for a receipt.
    ///
    /// - Returns: The waiting call; nil if there is none. A receipt for a request that was not sent is ignored, and its
    ///   call continues to wait.
    package mutating func take(_ number: UInt64) -> (any STOMPCall)? {
        guard isSent(number) else { return nil }
        defer { releaseID(number) }
        if withdrawn.remove(number) != nil {
            inFlightCount -= 1
            removeAnswered()
        }
        guard let call = remove(number) else { return nil }
        removeAnswered()
        return call
    }

    private mutating func remove(_ number: UInt64) -> (any STOMPCall)? {
        guard let waiting = calls.removeValue(forKey: number) else { return nil }
        let call = waiting.call
        if !chosenIDs.isEmpty, chosenIDs[number] != nil { chosenCallCount -= 1 }
        numbers[ObjectIdentifier(call)] = nil
        if let subscription = waiting.subscription { subscribing[WireName(subscription)] = nil }
        if number <= lastSent { inFlightCount -= 1 }
        return call
    }

    /// Takes the calls whose requests were sent to matching destinations, in the order of the requests.
    package mutating func take(to isMeant: (String) -> Bool) -> [any STOMPCall] {
        let found = calls.filter { number, waiting in
            number <= lastSent && (waiting.destination.map(isMeant) ?? false)
        }
        return found.keys.sorted().compactMap { remove($0) }
    }

    /// Takes the call of the SUBSCRIBE that a MESSAGE has confirmed; its receipt is ignored when it arrives.
    package mutating func take(making subscription: String) -> (any STOMPCall)? {
        guard !subscribing.isEmpty, let number = subscribing[WireName(subscription)],
            number <= lastSent, let call = calls[number]?.call
        else { return nil }
        forget(call)
        return call
    }

    /// Takes the calls whose requests were sent and that need no receipt, in the order of the requests, and expects no
    /// receipt of withdrawn ones.
    package mutating func takeOptional() -> [any STOMPCall] {
        let found = calls.filter { $0.key <= lastSent && !$0.value.isRequired }.keys.sorted()
        inFlightCount -= withdrawn.count
        withdrawn = []
        defer { removeAnswered() }
        return found.compactMap { remove($0) }
    }

    /// Takes the calls whose time limit has passed, in the order of the limits.
    package mutating func takeExpired(at now: WireInstant) -> [any STOMPCall] {
        var expired: [any STOMPCall] = []
        while let first = heap.first, first.time <= now {
            heap.removeFirst()
            if withdrawn.remove(first.number) != nil { inFlightCount -= 1 }
            guard let call = remove(first.number) else { continue }
            expired.append(call)
        }
        removeAnswered()
        return expired
    }

    /// Removes a call; its receipt is ignored when it arrives.
    ///
    /// - Complexity: O(1), except for occasional clean-ups of the heap.
    package mutating func forget(_ call: any STOMPCall) {
        guard let number = numbers[ObjectIdentifier(call)], remove(number) != nil else { return }
        if number <= lastSent {
            withdrawn.insert(number)
            inFlightCount += 1
        }
        removeAnswered()
    }

    /// Takes all calls, divided into those whose requests were sent and the others, each in the order of the requests.
    package mutating func takeAll() -> (sent: [any STOMPCall], unsent: [any STOMPCall]) {
        defer {
            calls = [:]
            numbers = [:]
            subscribing = [:]
            chosen = [:]
            chosenIDs = [:]
            chosenCallCount = 0
            heap = DeadlineHeap()
            withdrawn = []
            inFlightCount = 0
        }
        let all = calls.sorted { $0.key < $1.key }
        let split = all.firstIndex { $0.key > lastSent } ?? all.endIndex
        return (all[..<split].map(\.value.call), all[split...].map(\.value.call))
    }

    /// Keeps an unanswered call at the top of the heap.
    private mutating func removeAnswered() {
        heap.removeClosed(openCount: calls.count + withdrawn.count) { number in
            calls[number] != nil || withdrawn.contains(number)
        }
    }
}
