import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Why a connection ends, and the calls that end with it.
struct STOMPConnectionEnd: Sendable {
    /// The core's reason; nil before.
    var closure: STOMPClosure?
    /// The error of calls that are unanswered at the end; nil means its cause.
    var abandonment: WaybillError?
    /// The calls that fail at the end, with their errors; nil means the error of the end.
    private var failing: [(call: STOMPPendingCall, error: WaybillError?)] = []

    /// Returns the cause of the end; nil if this side ended the connection.
    ///
    /// - Parameters:
    ///   - error: The error of the stream.
    ///   - isAccepted: Whether the server had answered CONNECT.
    /// - Returns: The cause.
    func cause(_ error: LinkError?, isAccepted: Bool) -> WaybillError? {
        switch (closure, error) {
        case (.endOfStream?, let error?), (nil, let error?):
            var cause = WaybillError(error)
            let isSilence = !isAccepted && ReplaySuspicion.End(error) == .closed
            if isSilence { cause.wordlessRefusal = .silence }
            return cause
        case (let closure?, _): return STOMPMapping.error(closure)
        case (nil, nil): return nil
        }
    }

    /// Why the connection has ended, for the subscriptions that are made again.
    func replayEnd(_ error: LinkError?) -> ReplaySuspicion.End {
        switch (closure, error) {
        case (.error?, _): .closed
        case (.endOfStream?, let error?), (nil, let error?): ReplaySuspicion.End(error)
        default: .unrelated
        }
    }

    /// Returns the error of calls that are unanswered at the end.
    func unanswered(_ cause: WaybillError?) -> WaybillError {
        abandonment ?? STOMPMapping.unanswered(cause)
    }

    /// Keeps a call that fails when the connection is over, so that a retry makes a new connection.
    mutating func add(_ call: any STOMPCall, _ error: WaybillError?) {
        if let call = call as? STOMPPendingCall { failing.append((call, error)) }
    }

    /// Fails the calls.
    func failCalls(_ cause: WaybillError?) {
        for (call, error) in failing {
            // A frame that was never sent fails with this side's reason for the end, if there is one.
            let isUnsent = error?.code == .notConnected
            let reason = isUnsent ? abandonment ?? error : error
            call.fail(reason ?? unanswered(cause))
        }
    }
}
