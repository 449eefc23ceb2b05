package import STOMPWire
package import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Converts requests into frames, and received frames into receipts, messages and errors.
///
/// `Documentation/Mapping.md` has the same rules as a table.
package enum STOMPMapping {
    static func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: "STOMP", what, request)
    }

    private static func checkQoS(_ request: Request) throws(WaybillError) {
        guard request.command.qos != .exactlyOnce else {
            throw .unsupported(qosAbove: .atLeastOnce, by: "STOMP", request)
        }
    }

    static func invalid(_ what: String, _ request: Request) -> WaybillError {
        WaybillError(.invalidEntry, what).about(request)
    }

    // MARK: Requests

    static func connect(
        _ request: Request,
        _ configuration: STOMPConfiguration,
        _ addresses: ServiceAddresses
    ) throws(WaybillError) -> STOMPConnect {
        guard request.command.code == .connect, request.topic == nil else {
            throw unsupported("topic of a connect", request)
        }
        var options = OptionReader(request)
        let userName = options.take(.userName)
        let password = options.take(.password)
        let keepAlive = options.take(.keepAlive)
        // Read where the connection is made.
        _ = options.take(.timeout)
        _ = options.take(.upgradeHeaders)
        let address = try addresses.address(statedIn: &options, of: request)
        let isForeign = address?.isForeign ?? false
        try options.finish(for: "STOMP")
        var headers = request.headers
        // The headers of an interceptor or an entry override the configuration.
        func take(_ name: String) -> String? {
            defer { headers.removeAll(named: name) }
            return headers.first(name)
        }
        let connect = STOMPConnect(
            versions: configuration.wireVersions,
            host: take(STOMPHeaderName.host) ?? configuration.host,
            login: take(STOMPHeaderName.login) ?? userName ?? address?.userName
                ?? (isForeign ? nil : configuration.userName),
            passcode: take(STOMPHeaderName.passcode) ?? password ?? address?.password
                ?? (isForeign ? nil : configuration.password),
            heartBeat: STOMPHeartBeat(
                outgoing: keepAlive ?? configuration.heartBeat.outgoing,
                incoming: keepAlive ?? configuration.heartBeat.incoming
            ),
            headers: STOMPHeaders(headers)
        )
        // Without a virtual host the connection's host is used, which is not known yet. The check needs any host.
        var complete = connect
        complete.host = connect.host ?? "host"
        try converting(request, complete.check)
        return connect
    }

    /// Refuses a body, or the wait for a reply, in other requests than `send`.
    static func checkBody(_ request: Request) throws(WaybillError) {
        if request.command.code == .send { return }
        guard request.body.isEmpty, !request.expectsReply else {
            throw unsupported("body of, or reply to, a \(request.command.name)", request)
        }
    }

    /// Refuses what STOMP does not support in a disconnect.
    static func checkDisconnect(_ request: Request) throws(WaybillError) {
        guard request.topic == nil else { throw unsupported("topic of a disconnect", request) }
        try WaybillError.refuse([.headers: request.statesHeaders], by: "STOMP", request)
        var options = OptionReader(request)
        _ = options.take(.timeout)
        // No limit for pending sends: the receipt of DISCONNECT follows all others, so closing already waits for them.
        try options.finish(for: "STOMP")
    }

    /// Returns the message of an ACK or a NACK, and its transaction.
    static func acknowledgement(
        _ request: Request
    ) throws(WaybillError) -> (message: Message.ID, transaction: String?) {
        var options = OptionReader(request)
        let transaction = options.take(.transaction)
        // Read where the frame is sent.
        _ = options.take(.receipt)
        try options.finish(for: "STOMP")
        guard let message = request.command.message else {
            throw invalid("the command names no message", request)
        }
        return (message, transaction)
    }

    /// Returns the name in a BEGIN, a COMMIT or an ABORT; refuses other commands.
    static func transaction(_ request: Request) throws(WaybillError) -> String {
        guard [.begin, .commit, .abort].contains(request.command.kind) else {
            throw unsupported("command \(request.command.name)", request)
        }
        var options = OptionReader(request)
        let name = options.take(.transaction)
        try options.finish(for: "STOMP")
        guard let name, !name.isEmpty else {
            throw invalid("a transaction needs a name", request)
        }
        return name
    }

    /// Refuses headers that no version can send.
    ///
    /// The connection's version may allow less.
    static func check(_ headers: STOMPHeaders, _ request: Request) throws(WaybillError) {
        try converting(request) { () throws(STOMPSendError) in
            try headers.check(for: .send, version: .v1_2)
        }
    }

    /// Returns the headers of an UNSUBSCRIBE.
    static func unsubscription(_ request: Request) throws(WaybillError) -> STOMPHeaders {
        var options = OptionReader(request)
        // Read where the frame is sent.
        _ = options.take(.receipt)
        try options.finish(for: "STOMP")
        try checkReserved(request, STOMPHeaderName.id)
        let headers = STOMPHeaders(request.headers)
        try check(headers, request)
        return headers
    }

    /// Returns the headers of a BEGIN.
    static func beginning(
        _ transaction: String,
        _ request: Request
    ) throws(WaybillError) -> STOMPHeaders {
        try checkReserved(request, STOMPHeaderName.transaction)
        var headers: STOMPHeaders = [STOMPHeaderName.transaction: transaction]
        headers.append(STOMPHeaders(request.headers))
        return headers
    }

    static func send(
        _ request: Request,
        _ configuration: STOMPConfiguration
    ) throws(WaybillError) -> STOMPSend {
        if request.expectsReply { try checkReply(request) }
        try checkQoS(request)
        let isPlain = request.command.isPlain
        var timeout: Duration?
        var receipt: STOMPReceipt?
        var transaction: String?
        var hasLength: Bool?
        if !isPlain {
            var options = OptionReader(request)
            timeout = options.take(.timeout)
            receipt = options.take(.receipt)
            transaction = options.take(.transaction)
            hasLength = options.take(.contentLength)
            // Read by the interceptors, by the headers and by the queue.
            _ = options.take(.idempotent)
            _ = options.take(.expectsReply)
            _ = options.take(.responseTopic)
            _ = options.take(.correlationData)
            _ = options.take(.waitsForConnection)
            try options.finish(for: "STOMP")
        }
        try checkReserved(request, STOMPHeaderName.destination)
        guard let topic = request.topic, !topic.isEmpty else {
            throw invalid("a send needs a destination", request)
        }
        var headers: STOMPHeaders = [STOMPHeaderName.destination: topic]
        if let contentType = request.contentType {
            headers.append(STOMPHeaderName.contentType, contentType)
        }
        for header in request.headers { headers.append(header.name, header.value) }
        if !isPlain { try addReplyHeaders(request, to: &headers) }
        if let transaction { try add(transaction, request, to: &headers) }
        let demand =
            receipt.map(STOMPReceiptDemand.init)
            ?? receiptDemand(request.command.qos, headers, configuration)
        var send = STOMPSend(headers: headers, timeout: timeout, receipt: demand)
        send.receiptID = receipt?.chosenIdentifier
        if hasLength == false { try checkUncounted(request) }
        send.hasLength = hasLength
        return send
    }

    /// Whether a send asks for a receipt whose entry does not say it.
    ///
    /// In a transaction only its end does, because servers may process and answer its frames at COMMIT.
    private static func receiptDemand(
        _ qos: QoS,
        _ headers: STOMPHeaders,
        _ configuration: STOMPConfiguration
    ) -> STOMPReceiptDemand {
        guard headers.first(STOMPHeaderName.transaction) == nil else { return .none }
        return qos == .atLeastOnce ? .required : configuration.receiptDemand
    }

    static func subscription(_ request: Request) throws(WaybillError) -> STOMPSubscribe {
        try checkQoS(request)
        var options = OptionReader(request)
        let isManual: Bool = options.take(.manualAcknowledgement)
        var stated = options.take(.ackMode).map(STOMPAckMode.init)
        // Read where the frame is sent, and by the listener.
        _ = options.take(.receipt)
        let identifier = options.take(.identifier)
        _ = options.take(.timeout)
        _ = options.take(.buffering)
        _ = options.take(.waitsForConnection)
        try options.finish(for: "STOMP")
        try checkReserved(request, STOMPHeaderName.destination, STOMPHeaderName.id)
        guard let topic = request.topic, !topic.isEmpty else {
            throw invalid("a subscription needs a destination", request)
        }
        var headers = request.headers
        if let text = headers.first(STOMPHeaderName.ack) {
            guard let mode = STOMPAckMode(rawValue: text) else {
                throw invalid("the header ack is not auto, client or client-individual", request)
            }
            stated = mode
            headers.removeAll(named: STOMPHeaderName.ack)
        }
        let wantsAcknowledgement = request.command.qos == .atLeastOnce || isManual
        if stated == .auto, isManual {
            throw invalid("nothing is acknowledged in the ack mode auto", request)
        }
        let ackMode = stated ?? (wantsAcknowledgement ? .clientIndividual : .auto)
        var subscribe = STOMPSubscribe(destination: topic, ackMode: ackMode)
        subscribe.isModeImplied = stated == nil
        subscribe.identifier = identifier
        subscribe.headers = STOMPHeaders(headers)
        try check(subscribe.allHeaders, request)
        return subscribe
    }

    /// Refuses headers that the transport writes itself.
    private static func checkReserved(
        _ request: Request,
        _ names: String...
    ) throws(WaybillError) {
        let reserved = names + [STOMPHeaderName.contentLength, STOMPHeaderName.receipt]
        for header in request.headers where reserved.contains(header.name) {
            throw invalid("the header \(header.name) is not an entry's to set", request)
        }
    }

    // MARK: Received frames

    static func message(_ frame: STOMPFrame, isAcknowledged: Bool) -> Message {
        let list = frame.headers.list
        var values = KeyedValues()
        values[.responseTopic] = list.first(replyTo)
        values[.correlationData] = list.first(correlationID).map { Array($0.utf8) }
        return Message(
            topic: frame.headers.destination ?? "",
            body: Payload(frame.body),
            headers: Headers(list),
            contentType: list.first(STOMPHeaderName.contentType),
            qos: isAcknowledged ? .atLeastOnce : .atMostOnce,
            // RabbitMQ and ActiveMQ both send this header.
            isDuplicate: list.first("redelivered") == "true",
            id: frame.headers.messageID.map { Message.ID(.text(WireName($0))) },
            values: values
        )
    }

    /// The receipt of a request that the server has confirmed with RECEIPT.
    static func receipt(_ request: Request, _ headers: STOMPReceivedHeaders) -> Receipt {
        Receipt(topic: request.topic, headers: Headers(headers.list))
    }

    static func receipt(_ connected: STOMPConnected, _ tls: NegotiatedTLS?) -> Receipt {
        Receipt(
            reason: "STOMP \(connected.version.text)" + (connected.server.map { ", \($0)" } ?? ""),
            headers: Headers(connected.headers),
            tls: tls
        )
    }

    // MARK: Errors

    /// Runs a function that sends, and converts its error into the error of the request.
    static func converting<Result>(
        _ request: Request,
        _ send: () throws(STOMPSendError) -> Result
    ) throws(WaybillError) -> Result {
        do throws(STOMPSendError) { return try send() } catch {
            throw Self.error(error, request)
        }
    }

    package static func error(_ error: STOMPSendError, _ request: Request) -> WaybillError {
        let (code, message): (WaybillError.Code, String) =
            switch error {
            case .notConnected: (.notConnected, "there is no connection")
            case .encoding(let fault): (.invalidEntry, "this cannot be sent: \(fault)")
            case .noVersion: (.invalidEntry, "no version of the protocol is offered")
            case .hostMissing: (.invalidEntry, "CONNECT needs a host")
            case .destinationMissing: (.invalidEntry, "a destination is needed")
            case .headerReserved(let name):
                (.invalidEntry, "the header \(name) is not an entry's to set")
            case .notSupported(let version):
                (.unsupported, "STOMP \(version.text) does not have this")
            case .subscriptionIDTaken: (.invalidEntry, "the id of the subscription is taken")
            case .receiptTaken: (.invalidEntry, "the id of the receipt is taken")
            case .receiptsOverdue:
                (.limitExceeded, "too many receipts with ids of the app have not come")
            case .subscriptionUnknown:
                (.invalidEntry, "the subscription of this message has ended")
            case .transactionOpen: (.invalidEntry, "a transaction of that name is open")
            case .transactionUnknown: (.invalidEntry, "no transaction of that name is open")
            }
        return WaybillError(code, message).about(request)
    }

    /// The error of a request whose receipt has not come.
    ///
    /// - Parameter isAnswering: Whether the server has answered another request.
    /// - Returns: The error.
    static func noReceipt(isAnswering: Bool) -> WaybillError {
        WaybillError(
            .timedOut,
            "the server sent no receipt in time"
                + (isAnswering
                    ? "" : "; if it never sends any, set receipts to never in the configuration")
        )
    }

    /// The error for a server that sends no receipts.
    static var receiptsMissing: WaybillError {
        var error = WaybillError(
            .unsupported,
            "the server sends no receipts, so that requests end when they are handed to the link"
        )
        error.option = .receipt
        return error
    }

    /// The error for a server whose messages cannot be acknowledged.
    static var acknowledgementMissing: WaybillError {
        var error = WaybillError(
            .unsupported,
            "the server sends messages without the header ack, which cannot be acknowledged"
        )
        error.option = .ackMode
        return error
    }

    /// The error for an ERROR frame that answers a request.
    static func refusal(_ frame: STOMPErrorFrame) -> WaybillError {
        served(frame, .rejected, "the server refused")
    }

    private static func served(
        _ frame: STOMPErrorFrame,
        _ code: WaybillError.Code,
        _ message: String
    ) -> WaybillError {
        let error = STOMPServerError(
            message: frame.message,
            headers: Headers(frame.headers),
            body: Payload(frame.body)
        )
        return WaybillError(code, message, peerReason: error.description, underlying: error)
    }

    /// The cause of a connection's end; nil if this side ended it.
    package static func error(_ closure: STOMPClosure) -> WaybillError? {
        switch closure {
        case .disconnected: nil
        case .refused(let frame) where isAboutVersion(frame):
            served(frame, .unsupported, versionMissing).asLimitOfServer
        case .refused(let frame):
            served(
                frame,
                isAboutCredentials(frame) ? .unauthorized : .rejected,
                "the server refused the connection"
            )
        case .error(let frame):
            served(frame, .connectionLost, "the server ended the connection with ERROR")
        case .violation(.versionNotOffered):
            WaybillError(.unsupported, versionMissing).asLimitOfServer
        case .violation(let violation):
            WaybillError(
                isLimit(violation) ? .limitExceeded : .protocolViolation,
                "the server broke the protocol: \(violation.message)"
            )
        case .connectTimedOut: WaybillError(.timedOut, "no CONNECTED within the time allowed")
        case .heartBeatMissed:
            WaybillError(.connectionLost, "nothing heard for twice the agreed heart-beat")
        case .endOfStream: WaybillError(.connectionLost, "the server closed the connection")
        case .answeredInHTTP:
            WaybillError(
                .unsupported,
                "the server speaks HTTP: set the port of STOMP, or a URL with ws or wss"
            ).asLimitOfServer
        }
    }

    private static let versionMissing =
        "the server lacks the versions of STOMP that are offered: set versions to others"

    /// Whether a refusal is about the version: it names those of the server (STOMP 1.2, Protocol Negotiation).
    ///
    /// RabbitMQ names them in every ERROR, so the text has to speak of versions, too.
    private static func isAboutVersion(_ frame: STOMPErrorFrame) -> Bool {
        frame.headers.first(STOMPHeaderName.version) != nil && text(of: frame).contains("version")
    }

    /// The text of a refusal in lower case.
    private static func text(of frame: STOMPErrorFrame) -> String {
        let body = String(decoding: frame.body.prefix(1_024), as: UTF8.self)
        return "\(frame.message ?? "") \(body)".lowercased()
    }

    private static func isLimit(_ violation: STOMPViolation) -> Bool {
        switch violation {
        case .lineTooLong, .tooManyHeaders, .bodyTooLarge: true
        default: false
        }
    }

    /// Whether a refusal is about credentials, which only its text shows, because STOMP has no error codes.
    private static func isAboutCredentials(_ frame: STOMPErrorFrame) -> Bool {
        let phrases = [
            "access refused", "access denied", "access_refused", "password", "passcode",
            "credential",
            "authenticat", "authoriz", "unauthorized", "login",
        ]
        let text = text(of: frame)
        return phrases.contains { text.contains($0) }
    }
}
