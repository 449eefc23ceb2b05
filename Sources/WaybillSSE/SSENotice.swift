import Waybill

/// The opening, a comment, a new reconnection time or the end of a stream, delivered among its events so that the order is kept.
///
/// A message without content carries it as its delivery.
final class SSENotice: MessageDelivery {
    enum Kind: Sendable {
        /// The stream is open.
        case opened(EventStreamResponse)
        /// A comment; its text is the body of the message.
        case comment
        /// The server has set another reconnection time.
        case reconnectionTime(Duration)
        /// An attempt has ended; the status is that of the response, if there was one.
        case ended(status: Int?, willReconnect: Bool, error: WaybillError?, lastEventID: String)
    }

    let kind: Kind
    private let body: Payload

    init(_ kind: Kind, body: Payload = Payload()) {
        self.kind = kind
        self.body = body
    }

    var message: Message {
        var message = Message(topic: "", body: body)
        message.delivery = self
        message.isBoundedByPeer = true
        return message
    }

    func messageWasTaken() -> MessageValidity { .valid }
    func messageWasDropped() {}
}
