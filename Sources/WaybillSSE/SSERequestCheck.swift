import HTTPWire
package import Waybill
import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What an event stream transport refuses before any input or output; also for what stands for one in tests.
package struct SSERequestCheck: Sendable {
    let planner: HTTPRequestPlanner

    init(planner: HTTPRequestPlanner) {
        self.planner = planner
    }

    /// Makes the check of a transport.
    ///
    /// - Parameters:
    ///   - url: The URL of the transport.
    ///   - configuration: Its configuration.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    package init(url: String, configuration: SSEConfiguration) throws(WaybillError) {
        planner = HTTPRequestPlanner(
            base: try HTTPTarget(ServiceAddress.url(url)),
            configuration: configuration
        )
    }

    /// Checks a request as the interceptors have left it.
    /// - Throws: `unsupported`, `invalidEntry`.
    package func check(_ request: Request) throws(WaybillError) {
        switch request.command {
        case .connect(let options): try check(options, request)
        case .send(let options): _ = try plan(request, options)
        case .subscribe(let options): try check(options, request)
        case .unsubscribe: break
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
                .receipt: options.asksForReceipt != nil,
                .responseTopic: options.responseTopic != nil,
                .correlationData: options.correlationData != nil,
            ],
            request
        )
        return try planner.plan(request, method: options.method ?? "POST")
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
            ],
            request
        )
        // Refused now, not at the first attempt.
        _ = try planner.streamPlan(request, options)
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
                .keepAlive: options.keepAlive != nil, .headers: !request.headers.isEmpty,
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
                .headers: !request.headers.isEmpty, .disconnectReason: options.statesReason,
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
