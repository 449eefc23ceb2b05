import Waybill

/// What happens to a stream, told among its events so that the order is kept.
///
/// Rides on a message without content, in the place of those who hear what became of it.
final class SSENotice: MessageDelivery {
    enum Kind: Sendable {
        /// The server streams events from now on.
        case opened(EventStreamResponse)
        /// A comment; its text is the body of the message.
        case comment
        /// An attempt has ended; the status is that of the answer, if one came.
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
        return message
    }

    func messageWasTaken() -> MessageValidity { .valid }
    func messageWasDropped() {}
}
