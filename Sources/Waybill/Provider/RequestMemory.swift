import WireCore

/// What the package's own interceptors remember of a request, from its first attempt to its end.
///
/// A decision about a retry depends on what was done to the attempt that failed, and the interceptor of
/// many requests has no other place for that which goes when the request does.
final class RequestMemory: Sendable {
    private struct Notes: Sendable {
        var tokens: [ObjectIdentifier: TokenUse] = [:]
        var attemptWithoutToken = 0
        var budgets: [RetryBudget] = []
        var omissions: Set<OmittedOptions.Omission> = []
    }

    // Nil until something is noted: most requests are made and forgotten without.
    private let notes = Locked<Notes?>(nil)
    private let disconnects: DisconnectSignal
    private let disconnectCount: Int

    /// - Parameter disconnects: Who tells that somebody disconnects.
    init(_ disconnects: DisconnectSignal) {
        self.disconnects = disconnects
        disconnectCount = disconnects.count
    }

    /// Where events of the request are reported; nil in the test of an interceptor.
    var events: TransportEventSource? { disconnects.events }

    /// Whether somebody has disconnected since the request was made.
    var isDisconnected: Bool { disconnects.count != disconnectCount }

    /// - Throws: `notConnected` if somebody has disconnected since the request was made: it waits for no token.
    func checkDisconnected() throws(WaybillError) {
        guard !isDisconnected else {
            throw WaybillError(.notConnected, "disconnected while waiting for a token")
        }
    }

    /// Has a wait ended when somebody disconnects.
    ///
    /// - Parameters:
    ///   - end: Ends the wait; called perhaps before it, but not if it is disconnected already.
    ///   - wait: The wait.
    func endingAtDisconnect(
        _ end: @escaping @Sendable () -> Void,
        _ wait: () async -> Void
    ) async {
        let handler = disconnects.add(since: disconnectCount, end)
        await wait()
        disconnects.remove(handler)
    }

    /// The token that an interceptor has put on the request.
    func tokenUse(by owner: TokenInterceptor) -> TokenUse? {
        notes.withLock { $0?.tokens[ObjectIdentifier(owner)] }
    }

    /// Remembers the token that an interceptor has put on the request.
    func note(_ use: TokenUse, by owner: TokenInterceptor) {
        withNotes { $0.tokens[ObjectIdentifier(owner)] = use }
    }

    /// The last attempt that failed for want of a token, before it was sent; zero for none.
    var attemptWithoutToken: Int {
        get { notes.withLock { $0?.attemptWithoutToken ?? 0 } }
        set { withNotes { $0.attemptWithoutToken = newValue } }
    }

    /// The options that the request goes without.
    var omissions: Set<OmittedOptions.Omission> { notes.withLock { $0?.omissions ?? [] } }

    /// Notes an option that the request goes without.
    /// - Returns: Whether it had that option before.
    func omit(_ omission: OmittedOptions.Omission) -> Bool {
        var isNew = false
        withNotes { isNew = $0.omissions.insert(omission).inserted }
        return isNew
    }

    /// Has a budget told when the request succeeds.
    func enter(_ budget: RetryBudget) {
        withNotes { notes in
            guard !notes.budgets.contains(where: { $0 === budget }) else { return }
            notes.budgets.append(budget)
        }
    }

    /// Tells the budgets.
    func noteSuccess() {
        guard let budgets = notes.withLock({ $0?.budgets }) else { return }
        for budget in budgets { budget.noteSuccess() }
    }

    private func withNotes(_ body: (inout Notes) -> Void) {
        notes.withLock { notes in
            var changed = notes ?? Notes()
            // So that they are changed in place.
            notes = nil
            body(&changed)
            notes = changed
        }
    }
}

/// That a request carries a token.
struct TokenUse: Sendable {
    /// Which token.
    var version: Int
    /// At which attempt.
    var attempt: Int
    /// How many refreshes had failed before it was put on.
    var failures: Int
    /// Whether the request was already tried again with a token that was got for it.
    var isRepeated: Bool
    /// How often it was refused late, and tried again with a token that was there already.
    var lateRefusalCount = 0

    /// More refusals that come late are not put down to tokens that have expired meanwhile.
    static let maximumLateRefusals = 1
}
