package import Waybill
package import WireCore

/// Decides what follows when a server refuses the credentials of a connection: one table for all transports.
///
/// A server refuses in three ways. *Words* answer the greeting or a request: CONNACK, ERROR or a status. *Silence* is a
/// close before the greeting was answered. A *dismissal* ends an accepted connection: DISCONNECT with Not authorized
/// (MQTT 5, 3.14.2.1). ``WaybillError/wordlessRefusal`` tells the last two.
///
/// | state | words | silence | a dismissal | other credentials were found | none were found | the server accepts |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | fresh | all are asked | some are asked | → dismissed | → replaced | | |
/// | dismissed | all are asked | some are asked | final | → replaced | → fresh | |
/// | replaced | all are asked | a plain loss | final | → replaced | | → on trial |
/// | on trial | all are asked | some are asked | final | → replaced | | |
///
/// *All* are the interceptors and the source of credentials, of which each answers once in an attempt. *Some* are the
/// token interceptors and the source. In the state dismissed all are asked before the next attempt. A dismissal is also
/// final if there is nobody to ask. A connection that lives longer than ``limit`` leads from on trial to fresh.
package struct CredentialTrial: Sendable {
    /// What is known of the present credentials.
    package enum State: Sendable {
        /// Nothing speaks against them.
        case fresh
        /// The server has ended a connection because of them.
        // Out of line, because most connections never have one.
        case dismissed(Shared<Dismissal>)
        /// They have taken the place of refused ones, and no server has accepted them yet.
        case replaced
        /// The server has accepted them a moment ago.
        case onTrial
    }

    /// The end of a connection because of its credentials.
    package struct Dismissal: Sendable {
        /// The attempt that has shown the credentials.
        let occasion: Shared<ConnectOccasion>
        /// The end, with the code `unauthorized`.
        package let error: WaybillError
    }

    /// The time from which on an accepted connection speaks for its credentials: 10 seconds.
    package static let limit = ReplaySuspicion.limit

    package private(set) var state = State.fresh
    /// The attempt that has shown the present credentials; nil if nobody can replace them.
    private var occasion: Shared<ConnectOccasion>?

    package init() {}

    /// Whether it says nothing, as without credentials that somebody can replace.
    var isUnused: Bool {
        if case .fresh = state { occasion == nil } else { false }
    }

    /// Notes that credentials are shown to a server.
    ///
    /// - Parameters:
    ///   - occasion: The attempt.
    ///   - hasSource: Whether the transport has a source of credentials.
    package mutating func noteShown(_ occasion: ConnectOccasion, hasSource: Bool) {
        self.occasion = occasion.canReplace(hasSource: hasSource) ? Shared(occasion) : nil
    }

    /// Notes that refused credentials were replaced.
    package mutating func noteReplaced() { state = .replaced }

    /// Notes that there were no others, so that the next attempt shows the same ones.
    package mutating func noteKept() {
        if case .dismissed = state { state = .fresh }
    }

    /// Notes that the server has accepted a connection.
    package mutating func noteAccepted() {
        if case .replaced = state { state = .onTrial }
    }

    /// Whether other credentials are asked for when the server refuses the present ones in a greeting.
    package func asks(after refusal: WaybillError.WordlessRefusal?) -> Bool {
        switch (refusal, state) {
        case (nil, _), (.dismissal?, .fresh): true
        case (.dismissal?, _), (.silence?, .replaced): false
        case (.silence?, _): true
        }
    }

    /// Judges the end of an accepted connection.
    ///
    /// - Parameters:
    ///   - cause: The cause; nil if this side ended it.
    ///   - life: The time since the server has accepted it.
    /// - Returns: The cause, as a loss if other credentials are asked for first.
    package mutating func judge(_ cause: WaybillError?, after life: Duration) -> WaybillError? {
        if case .onTrial = state, life > Self.limit { state = .fresh }
        guard let cause, cause.wordlessRefusal == .dismissal, case .fresh = state, let occasion
        else { return cause }
        state = .dismissed(Shared(Dismissal(occasion: occasion, error: cause.asRefusal)))
        return WaybillError(.connectionLost, cause.message, restating: cause)
    }
}

extension WaybillError {
    /// The same error as a refusal in words, which interceptors and sources know.
    package var asRefusal: WaybillError { WaybillError(.unauthorized, message, restating: self) }
}
