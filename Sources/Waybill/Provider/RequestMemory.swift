import WireCore

/// The memory of the package's own interceptors about a request, from its first attempt to its end.
///
/// A decision about a retry depends on what the failed attempt contained. An interceptor serves many requests and has
/// no other place for data that ends with one of them.
final class RequestMemory: Sendable {
    private struct Notes: Sendable {
        var tokens: [ObjectIdentifier: TokenUse] = [:]
        var attemptWithoutToken = 0
        var budgets: [RetryBudget] = []
        var omissions: Set<OmittedOptions.Omission> = []
    }

    // Nil until the first note: most requests never need one.
    private let notes = Locked<Notes?>(nil)
    private let disconnects: DisconnectSignal
    private let disconnectCount: Int

    /// - Parameter disconnects: The signal of disconnects.
    init(_ disconnects: DisconnectSignal) {
        self.disconnects = disconnects
        disconnectCount = disconnects.count
    }

    /// The source for the events of the request; nil in the test of an interceptor.
    var events: TransportEventSource? { disconnects.events }

    /// Whether a disconnect was requested since the request was made.
    var isDisconnected: Bool { disconnects.count != disconnectCount }

    /// Refuses to wait for a token after a disconnect.
    ///
    /// - Throws: `notConnected` if a disconnect was requested since the request was made.
    func checkDisconnected() throws(WaybillError) {
        guard !isDisconnected else {
            throw WaybillError(.notConnected, "disconnected while waiting for a token")
        }
    }

    /// Ends a wait at the next disconnect.
    ///
    /// - Parameters:
    ///   - end: Ends the wait; it may be called before the wait begins, but not if the disconnect came before this
    ///     call.
    ///   - wait: The wait.
    func endingAtDisconnect(
        _ end: @escaping @Sendable () -> Void,
        _ wait: () async -> Void
    ) async {
        let handler = disconnects.add(since: disconnectCount, end)
        await wait()
        disconnects.remove(handler)
    }

    /// The token that an interceptor has added to the request.
    func tokenUse(by owner: TokenInterceptor) -> TokenUse? {
        notes.withLock { $0?.tokens[ObjectIdentifier(owner)] }
    }

    /// Stores the token that an interceptor has added to the request.
    func note(_ use: TokenUse, by owner: TokenInterceptor) {
        withNotes { $0.tokens[ObjectIdentifier(owner)] = use }
    }

    /// Takes the tokens of an earlier request, as if its own first attempt had carried them.
    func takeTokens(of earlier: RequestMemory) {
        guard let tokens = earlier.notes.withLock({ $0?.tokens }) else { return }
        withNotes { notes in
            notes.tokens = tokens.mapValues { use in
                TokenUse(
                    version: use.version,
                    attempt: 1,
                    failures: use.failures,
                    isRepeated: false
                )
            }
        }
    }

    /// The last attempt that failed before it was sent because there was no token; zero for none.
    var attemptWithoutToken: Int {
        get { notes.withLock { $0?.attemptWithoutToken ?? 0 } }
        set { withNotes { $0.attemptWithoutToken = newValue } }
    }

    /// The options that were left out of the request.
    var omissions: Set<OmittedOptions.Omission> { notes.withLock { $0?.omissions ?? [] } }

    /// Notes an option to leave out of the request.
    ///
    /// - Returns: False if the option was already left out.
    func omit(_ omission: OmittedOptions.Omission) -> Bool {
        var isNew = false
        withNotes { isNew = $0.omissions.insert(omission).inserted }
        return isNew
    }

    /// Registers a budget that is told of the request's success.
    func enter(_ budget: RetryBudget) {
        withNotes { notes in
            guard !notes.budgets.contains(where: { $0 === budget }) else { return }
            notes.budgets.append(budget)
        }
    }

    /// Reports the success of the request to the budgets.
    func noteSuccess() {
        guard let budgets = notes.withLock({ $0?.budgets }) else { return }
        for budget in budgets { budget.noteSuccess() }
    }

    private func withNotes(_ body: (inout Notes) -> Void) {
        notes.withLock { notes in
            var changed = notes ?? Notes()
            // Cleared first, so that the notes are changed in place without a copy.
            notes = nil
            body(&changed)
            notes = changed
        }
    }
}

/// The token that a request carries.
struct TokenUse: Sendable {
    var version: Int
    /// The number of the attempt that carries it.
    var attempt: Int
    /// The number of refreshes that had failed before the token was added.
    var failures: Int
    /// Whether the request was already retried with a token that was fetched for it.
    var isRepeated: Bool
    /// The number of late refusals after which the request was retried with an existing token.
    var lateRefusalCount = 0

    /// Beyond this number, a late refusal no longer counts as a token that expired in the meantime.
    static let maximumLateRefusals = 1
}
