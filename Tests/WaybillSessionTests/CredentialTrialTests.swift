import Testing
import Waybill
import WaybillSession
import WireCore

/// The table of refused credentials.
@Suite("Refused credentials") struct CredentialTrialTests {
    private static let second = Duration.seconds(1)

    private static func dismissal(_ code: WaybillError.Code = .unauthorized) -> WaybillError {
        var error = WaybillError(code, "over", peerReason: "words")
        error.wordlessRefusal = .dismissal
        return error
    }

    /// A trial of credentials that a source can replace.
    private static func fresh() -> CredentialTrial {
        var trial = CredentialTrial()
        trial.noteShown(ConnectOccasion(isReconnection: false), hasSource: true)
        return trial
    }

    private static func replaced() -> CredentialTrial {
        var trial = fresh()
        trial.noteReplaced()
        return trial
    }

    private static func onTrial() -> CredentialTrial {
        var trial = replaced()
        trial.noteAccepted()
        return trial
    }

    private func name(_ trial: CredentialTrial) -> String {
        switch trial.state {
        case .fresh: "fresh"
        case .dismissed: "dismissed"
        case .replaced: "replaced"
        case .onTrial: "on trial"
        }
    }

    @Test("The first dismissal is a loss, and a refusal for those who are asked")
    func dismissed() {
        var trial = Self.fresh()
        let loss = trial.judge(Self.dismissal(), after: Self.second)
        #expect(loss?.code == .connectionLost && loss?.peerReason == "words")
        #expect(loss?.wordlessRefusal == nil)
        guard case .dismissed(let dismissal) = trial.state else {
            Issue.record("not dismissed")
            return
        }
        let error = dismissal.value.error
        #expect(error.code == .unauthorized && error.peerReason == "words")
        #expect(error.wordlessRefusal == nil)
        var kept = trial
        kept.noteKept()
        #expect(name(kept) == "fresh")
        trial.noteReplaced()
        #expect(name(trial) == "replaced")
        trial.noteKept()
        trial.noteAccepted()
        #expect(name(trial) == "on trial")
    }

    @Test("A dismissal is final for replaced credentials, and if there is nobody to ask")
    func final() {
        var alone = CredentialTrial()
        alone.noteShown(ConnectOccasion(isReconnection: false), hasSource: false)
        for var trial in [alone, Self.replaced(), Self.onTrial()] {
            let before = name(trial)
            #expect(trial.judge(Self.dismissal(), after: Self.second)?.code == .unauthorized)
            #expect(name(trial) == before)
            // A message may be the reason, so it is no more than a loss.
            let cause = trial.judge(Self.dismissal(.connectionLost), after: Self.second)
            #expect(cause?.code == .connectionLost)
        }
        var old = Self.onTrial()
        let life = CredentialTrial.limit + .nanoseconds(1)
        #expect(old.judge(Self.dismissal(), after: life)?.code == .connectionLost)
        #expect(name(old) == "dismissed")
    }

    @Test("Other ends change nothing")
    func otherEnds() {
        for var trial in [Self.fresh(), Self.replaced(), Self.onTrial()] {
            let before = name(trial)
            let lost = WaybillError(.connectionLost, "lost")
            #expect(trial.judge(lost, after: Self.second)?.code == .connectionLost)
            #expect(trial.judge(nil, after: Self.second) == nil)
            #expect(name(trial) == before)
        }
    }

    @Test("Who is asked before a server has accepted")
    func asks() {
        let all: [(CredentialTrial, silence: Bool, dismissal: Bool)] = [
            (Self.fresh(), true, true), (Self.replaced(), false, false),
            (Self.onTrial(), true, false),
        ]
        for (trial, silence, dismissal) in all {
            #expect(trial.asks(after: nil))
            #expect(trial.asks(after: .silence) == silence)
            #expect(trial.asks(after: .dismissal) == dismissal)
        }
    }
}
