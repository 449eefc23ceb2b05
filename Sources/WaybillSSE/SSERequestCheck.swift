import HTTPWire
package import Waybill
import WaybillSession
import WireCore

/// Puts requests into HTTP: below the transport's URL, with the fields of its configuration.
///
/// Refuses what cannot be sent before any input or output; the mock transport refuses the same.
package struct SSERequestCheck: Sendable {
    let base: HTTPTarget
    let configuration: SSEConfiguration

    init(base: HTTPTarget, configuration: SSEConfiguration) {
        self.base = base
        self.configuration = configuration
    }

    /// Makes the check of a transport.
    ///
    /// - Parameters:
    ///   - url: The URL of the transport.
    ///   - configuration: Its configuration.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    package init(url: String, configuration: SSEConfiguration) throws(WaybillError) {
        self.init(base: try HTTPTarget(ServiceAddress.url(url)), configuration: configuration)
    }

    /// Checks a request as the interceptors have left it.
    /// - Throws: `unsupported`, `invalidEntry`.
    package func check(_ request: Request) throws(WaybillError) {
        switch request.command {
        case .connect(let options): try check(options, request)
        case .send(let options): _ = try plan(request, options)
        case .subscribe(let options): try check(options, request)
        case .unsubscribe(let options):
            try refuse(
                [.severalTopics: request.hasSeveralTopics, .shareName: options.shareName != nil],
                request
            )
        case .ack, .nack: throw unsupported("acknowledgements", request)
        case .begin, .commit, .abort: throw unsupported("transactions", request)
        case .disconnect(let options): try check(options, request)
        }
    }

    /// What a send asks for.
    /// - Throws: `unsupported`, `invalidEntry`.
    func plan(_ request: Request, _ options: SendOptions) throws(WaybillError) -> HTTPRequestPlan {
        try checkQoS(options.qos, request)
        try refuse(
            [
                .retain: options.retain, .expiry: options.expiry != nil,
                .receipt: options.asksForReceipt != nil, .isText: options.isText != nil,
                .responseTopic: options.responseTopic != nil,
                .correlationData: options.correlationData != nil,
                .sentOnce: options.isSentOnce,
                .waitsForConnection: options.waitsForConnection == true,
            ],
            request
        )
        return try plan(request, method: options.method ?? "POST")
    }

    /// What a subscription asks for.
    ///
    /// - Throws: `invalidEntry`, `unsupported` for what cannot be sent.
    func plan(
        _ request: Request,
        _ options: SubscribeOptions
    ) throws(WaybillError) -> HTTPRequestPlan {
        let method = options.method ?? (request.body.isEmpty ? "GET" : "POST")
        var plan = try plan(request, method: method)
        // A header that says where to begin is out of date at the next attempt.
        plan.headers = HTTPHeaders(
            plan.headers.filter { !HTTPSyntax.areSameName($0.name, "last-event-id") }
        )
        return plan
    }

    private func plan(_ request: Request, method: String) throws(WaybillError) -> HTTPRequestPlan {
        try HTTPRequestPlan.check(request, method)
        try HTTPRequestPlan.check(configuration.headers)
        var plan = HTTPRequestPlan(
            method: method,
            target: try base.appending(request.topic),
            headers: headers(of: request),
            body: request.body
        )
        plan.topic = request.topic ?? ""
        return plan
    }

    /// The configuration's fields below the entry's, with credentials and content type.
    private func headers(of request: Request) -> HTTPHeaders {
        var headers = HTTPHeaders(request.headers)
        func add(_ name: String, _ value: String) {
            if headers.first(name) == nil { headers.append(name: name, value: value) }
        }
        if let contentType = request.contentType, !request.body.isEmpty {
            add("Content-Type", contentType)
        }
        let stated = headers
        for field in configuration.headers where stated.first(field.name) == nil {
            headers.append(name: field.name, value: field.value)
        }
        if let userName = configuration.userName {
            add("Authorization", HTTPRequestPlan.basic(userName, configuration.password ?? ""))
        }
        return headers
    }

    private func check(_ options: SubscribeOptions, _ request: Request) throws(WaybillError) {
        try checkQoS(options.qos, request)
        try refuse(
            [
                .severalTopics: request.hasSeveralTopics, .noLocal: options.noLocal,
                .retainAsPublished: options.retainAsPublished,
                .retainHandling: options.retainHandling != .send,
                .manualAcknowledgement: options.acknowledgement != .whenTaken,
                .ackMode: options.ackMode != nil, .receipt: options.asksForReceipt != nil,
                .shareName: options.shareName != nil,
                .subscriptionIdentifier: options.subscriptionIdentifier.isNumber,
            ],
            request
        )
        // Refused now, not at the first attempt.
        _ = try plan(request, options)
    }

    private func check(_ options: ConnectOptions, _ request: Request) throws(WaybillError) {
        guard request.body.isEmpty, request.topic == nil else {
            throw unsupported("topic or body of a connect", request)
        }
        try refuse(
            [
                .clientIdentifier: options.clientIdentifier != nil,
                .credentials: options.userName != nil || options.password != nil,
                .will: options.will != nil, .cleanStart: options.cleanStart != nil,
                .sessionExpiry: options.sessionExpiry != nil,
                .keepAlive: options.keepAlive != nil, .headers: request.statesHeaders,
            ],
            request
        )
    }

    private func check(_ options: DisconnectOptions, _ request: Request) throws(WaybillError) {
        guard request.topic == nil, request.body.isEmpty else {
            throw unsupported("topic or body of a disconnect", request)
        }
        try refuse(
            [
                .headers: request.statesHeaders, .disconnectReason: options.statesReason,
                .closeTimeout: options.timeout != nil,
                .drainTimeout: options.drainTimeout != nil,
                .sessionExpiry: options.sessionExpiry != nil,
            ],
            request
        )
    }

    private func refuse(
        _ stated: KeyValuePairs<UnsupportedOption, Bool>,
        _ request: Request
    ) throws(WaybillError) {
        try WaybillError.refuse(stated, by: "server-sent events", request)
    }

    private func checkQoS(_ qos: QoS, _ request: Request) throws(WaybillError) {
        guard qos != .exactlyOnce else {
            throw .unsupported(qosAbove: .atLeastOnce, by: "server-sent events", request)
        }
    }

    private func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: "server-sent events", what, request)
    }
}
