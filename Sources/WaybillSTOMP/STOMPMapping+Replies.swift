import STOMPWire
import Waybill
import WaybillSession

// Requests with replies. The specification has no replies, but brokers agree on these headers.
extension STOMPMapping {
    /// The header with the destination of the reply.
    static let replyTo = "reply-to"
    /// The header that identifies a reply.
    static let correlationID = "correlation-id"

    /// Refuses options and headers that exclude a reply.
    static func checkReply(_ request: Request) throws(WaybillError) {
        let command = request.command
        let isTaken =
            command[.responseTopic] != nil || command[.correlationData] != nil
            || request.headers.contains { $0.name == replyTo || $0.name == correlationID }
        guard !isTaken else {
            throw WaybillError(
                .invalidEntry,
                "the answer is awaited here: reply-to and correlation-id are not an entry's to set"
            ).about(request)
        }
        // The server does not deliver the request before COMMIT.
        let isInTransaction =
            command[.transaction] != nil
            || request.headers.first(STOMPHeaderName.transaction) != nil
        guard !isInTransaction else {
            throw unsupported("replies to a send within a transaction", request)
        }
    }

    /// Adds the reply headers of the options, unless the entry has set them.
    static func addReplyHeaders(
        _ request: Request,
        to headers: inout STOMPHeaders
    ) throws(WaybillError) {
        if let topic = request.command[.responseTopic], headers.first(replyTo) == nil {
            headers.append(replyTo, topic)
        }
        guard let data = request.command[.correlationData],
            headers.first(correlationID) == nil
        else { return }
        guard let text = Payload(data).text else {
            throw WaybillError(.invalidEntry, "correlation data that is not UTF-8 fits no header")
                .about(request)
        }
        headers.append(correlationID, text)
    }

    /// The error of a request that was unanswered when the connection ended.
    static func unanswered(_ cause: WaybillError?) -> WaybillError {
        let message = "the connection ended before the server answered"
        return WaybillError(.connectionLost, message, restating: cause)
    }

    /// The error of a request that was not sent before the connection ended.
    static func notSent(_ cause: WaybillError? = nil) -> WaybillError {
        let message = "the connection ended before the request was sent"
        return WaybillError(.notConnected, message, restating: cause)
    }

    /// The end of a connection whose server has refused a subscription with ERROR.
    static func lostByRefusal(_ refusal: WaybillError) -> WaybillError {
        let message = "the server refused a subscription and ended the connection"
        return WaybillError(.connectionLost, message, after: refusal)
    }
}
