import STOMPWire
import Waybill
import WaybillSession

// Requests that are answered, and their answers: not in the specification, but brokers agree on it.
extension STOMPMapping {
    /// Where an answer is sent to.
    static let replyTo = "reply-to"
    /// What tells an answer apart.
    static let correlationID = "correlation-id"

    /// Refuses what is in the way of an answer.
    static func checkReply(_ request: Request, _ options: SendOptions) throws(WaybillError) {
        let isTaken =
            options.responseTopic != nil || options.correlationData != nil
            || request.headers.contains { $0.name == replyTo || $0.name == correlationID }
        guard !isTaken else {
            throw WaybillError(
                .invalidEntry,
                "the answer is awaited here: reply-to and correlation-id are not an entry's to set"
            ).about(request)
        }
        // Nobody sees it before COMMIT.
        guard request.headers.first(STOMPHeaderName.transaction) == nil else {
            throw unsupported("replies to a send within a transaction", request)
        }
    }

    /// Adds what the options say about answers, unless the entry's headers do.
    static func addReplyHeaders(
        _ options: SendOptions,
        _ request: Request,
        to headers: inout STOMPHeaders
    ) throws(WaybillError) {
        if let topic = options.responseTopic, headers.first(replyTo) == nil {
            headers.append(replyTo, topic)
        }
        guard let data = options.correlationData, headers.first(correlationID) == nil else {
            return
        }
        guard let text = Payload(data).text else {
            throw WaybillError(.invalidEntry, "correlation data that is not UTF-8 fits no header")
                .about(request)
        }
        headers.append(correlationID, text)
    }

    /// What a request fails with when the connection ends before it was answered.
    static func unanswered(_ cause: WaybillError?) -> WaybillError {
        WaybillError(
            .connectionLost,
            "the connection ended before the server answered",
            peerReason: cause?.peerReason,
            underlying: cause?.underlying
        )
    }
}
