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
        case .disconnect(let options):
            guard options == DisconnectOptions(), request.topic == nil, request.body.isEmpty,
                request.headers.isEmpty
            else { throw unsupported("options of a disconnect", request) }
        }
    }

    /// What a send asks for.
    /// - Throws: `unsupported`, `invalidEntry`.
    func plan(_ request: Request, _ options: SendOptions) throws(WaybillError) -> HTTPRequestPlan {
        guard options.qos == .atMostOnce || options.qos == .atLeastOnce else {
            throw unsupported("quality of service 2", request)
        }
        guard !options.retain, options.expiry == nil, options.asksForReceipt == nil else {
            throw unsupported("retain, expiry or receipts", request)
        }
        guard options.responseTopic == nil, options.correlationData == nil else {
            throw unsupported("response topics or correlation data", request)
        }
        return try planner.plan(request, method: options.method ?? "POST")
    }

    private func check(_ options: SubscribeOptions, _ request: Request) throws(WaybillError) {
        guard options.qos == .atMostOnce || options.qos == .atLeastOnce,
            !options.noLocal, !options.retainAsPublished, options.retainHandling == .send,
            options.acknowledgement == .whenTaken, options.ackMode == nil,
            options.asksForReceipt == nil
        else { throw unsupported("such options of a subscription", request) }
        // Refused now, not at the first attempt.
        _ = try planner.streamPlan(request, options)
    }

    private func check(_ options: ConnectOptions, _ request: Request) throws(WaybillError) {
        let isPlain =
            options.clientIdentifier == nil && options.userName == nil && options.password == nil
            && options.will == nil && options.cleanStart == nil && options.keepAlive == nil
        guard isPlain, request.body.isEmpty, request.headers.isEmpty, request.topic == nil else {
            throw unsupported("options of a connect", request)
        }
    }

    private func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: "server-sent events", what, request)
    }
}
