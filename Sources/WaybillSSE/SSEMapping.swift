package import EventStreamWire
package import HTTPWire
package import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Responses and events into receipts, messages and errors.
package enum SSEMapping {
    /// Makes the message of an event, with a copy of its data.
    static func message(
        _ arrivals: EventStreamArrivals,
        _ index: Int,
        topic: String,
        copiedBy copier: inout SliceCopier
    ) -> Message {
        let (type, id) = (arrivals.type(at: index), arrivals.lastEventID(at: index))
        let body =
            arrivals.text(at: index, copiedBy: &copier).map { Payload(sharing: $0) }
            ?? Payload(arrivals.repairedText(at: index))
        let name = id.isEmpty ? nil : Message.ID(.text(WireName(id)))
        guard type != "message" else { return .plain(topic, body, id: name) }
        var values = KeyedValues()
        values[.eventType] = type
        return Message(topic: topic, body: body, id: name, values: values)
    }

    /// A response as a receipt with a reply.
    /// - Throws: For a status that is not 2xx.
    static func receipt(
        _ request: Request,
        _ response: HTTPPool.Response
    ) throws(WaybillError) -> Receipt {
        guard (200..<300).contains(response.head.status) else {
            throw error(response.head, response.body).about(request)
        }
        let headers = Headers(response.head.headers)
        let reply = Message(
            topic: request.topic ?? "",
            body: Payload(response.body),
            headers: headers,
            contentType: response.head.headers.first("content-type")
        )
        return Receipt(
            topic: request.topic,
            reason: reason(response.head),
            headers: headers,
            tls: response.tls,
            reply: reply
        )
    }

    static func reason(_ head: HTTPResponseHead) -> String {
        head.reason.isEmpty ? "\(head.status)" : "\(head.status) \(head.reason)"
    }

    /// What a status other than 2xx means (RFC 9110, 15.5 and 15.6).
    static func error(_ head: HTTPResponseHead, _ body: [UInt8]) -> WaybillError {
        WaybillError(
            head.status == 413 ? .limitExceeded : WaybillError.code(ofRefusal: head.status),
            "the server answered with \(head.status)",
            peerReason: reason(head),
            underlying: HTTPRefusal(head, body)
        )
    }

    package static func error(_ closure: HTTPClosure) -> WaybillError {
        switch closure {
        case .closed: WaybillError(.connectionLost, "the connection was closed")
        case .violation(.incompleteBody):
            WaybillError(.connectionLost, "the connection ended within the body")
        case .violation(.headTooLarge), .violation(.tooManyFields):
            WaybillError(.limitExceeded, "the head of the response is too large")
        case .violation(let violation):
            WaybillError(
                .protocolViolation,
                "the server broke HTTP: \(violation)"
            )
        case .unexpectedResponse:
            WaybillError(.protocolViolation, "the server sent a response without a request")
        case .responseTimedOut: WaybillError(.timedOut, "no response within the time allowed")
        case .idleTimedOut: WaybillError(.connectionLost, "the stream was silent for too long")
        case .endOfStream: WaybillError(.connectionLost, "the server closed the connection")
        }
    }

    /// Why a stream is over; nil for an end that it may have.
    package static func error(_ closure: EventStreamClosure) -> WaybillError? {
        switch closure {
        case .closed, .endOfStream: nil
        case .refused(let head, let body):
            head.status == 200
                ? WaybillError(
                    .protocolViolation,
                    "the response is no event stream",
                    peerReason: head.headers.first("content-type") ?? "no content type",
                    underlying: error(head, body).underlying
                ) : error(head, body)
        case .connection(let closure): error(closure)
        case .violation(let violation):
            WaybillError(.limitExceeded, "\(violation)")
        case .unknownCoding(let coding): uninvited(coding)
        case .invalidCoding:
            invalidCoding
        }
    }

    /// Coded data that is broken: often a fault of the way, which another attempt may not have.
    static let invalidCoding = WaybillError(
        .protocolViolation,
        "the response does not match its content coding"
    )

    /// An answer in a content coding that was not asked for, which is the server's fault (RFC 9110, 12.5.3).
    static func uninvited(_ coding: String) -> WaybillError {
        WaybillError(.protocolViolation, "the content coding \(coding) was not asked for")
    }

    package static func error(_ error: HTTPRequestError) -> WaybillError {
        switch error {
        case .busy: WaybillError(.connectionLost, "the connection is over")
        case .encoding(let fault): WaybillError(.invalidEntry, "this cannot be sent: \(fault)")
        }
    }
}
