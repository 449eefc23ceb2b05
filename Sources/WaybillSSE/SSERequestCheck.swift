import HTTPWire
package import Waybill
import WaybillSession
import WireCore

/// Puts requests into HTTP: below the transport's URL, with the fields of its configuration.
///
/// Refuses what cannot be sent before any input or output; the mock transport refuses the same.
package struct SSERequestCheck: Sendable {
    private static let name = "server-sent events"

    let base: HTTPTarget
    let configuration: SSEConfiguration
    let addresses: ServiceAddresses

    init(
        base: HTTPTarget,
        configuration: SSEConfiguration,
        addresses: ServiceAddresses = HTTPTarget.addresses
    ) {
        self.base = base
        self.configuration = configuration
        self.addresses = addresses
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
        switch request.command.code {
        case .connect, .disconnect: try checkBare(request)
        case .send: _ = try plan(ofSend: request)
        case .subscribe: try checkSubscription(request)
        case .unsubscribe:
            try refuse([.severalTopics: request.hasSeveralTopics], request)
            try OptionReader(request).finish(for: Self.name)
        case .ack, .nack: throw unsupported("acknowledgements", request)
        case .other: throw unsupported("command \(request.command.name)", request)
        }
    }

    /// What a send asks for.
    /// - Throws: `unsupported`, `invalidEntry`.
    func plan(ofSend request: Request) throws(WaybillError) -> HTTPRequestPlan {
        try checkQoS(request)
        guard !request.command.isPlain else { return try plan(request, method: "POST") }
        var options = OptionReader(request)
        let method = options.take(.method)
        // Read where the answer is awaited, and by the interceptors.
        _ = options.take(.timeout)
        _ = options.take(.idempotent)
        let stated = try addresses.address(statedIn: &options, of: request)
        // The response is the reply in any case.
        _ = options.take(.expectsReply)
        // No send waits for a connection, so that only a true one is refused.
        if request.command[.waitsForConnection] == false { _ = options.take(.waitsForConnection) }
        try options.finish(for: Self.name)
        return try plan(request, method: method ?? "POST", at: stated)
    }

    /// What a subscription asks for.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - method: The HTTP method; nil for `GET`, or `POST` with a body.
    ///   - offered: The address that the credentials state; nil for that of the request, or else the service's.
    /// - Returns: The plan.
    /// - Throws: `invalidEntry`, `unsupported` for what cannot be sent.
    func plan(
        ofStream request: Request,
        method: String?,
        at offered: ServiceAddress? = nil
    ) throws(WaybillError) -> HTTPRequestPlan {
        let method = method ?? (request.body.isEmpty ? "GET" : "POST")
        let own = try address(statedBy: request)
        let stated = offered ?? own
        var plan = try plan(request, method: method, at: stated)
        // A header that says where to begin is out of date at the next attempt.
        plan.headers = HTTPHeaders(
            plan.headers.filter { !HTTPSyntax.areSameName($0.name, "last-event-id") }
        )
        return plan
    }

    /// The address that a request states with its option; nil for the service's.
    ///
    /// - Throws: `unsupported`, `invalidEntry` for a URL that cannot be.
    func address(statedBy request: Request) throws(WaybillError) -> ServiceAddress? {
        guard !request.command.isPlain else { return nil }
        var options = OptionReader(request)
        return try addresses.address(statedIn: &options, of: request)
    }

    private func plan(
        _ request: Request,
        method: String,
        at stated: ServiceAddress? = nil
    ) throws(WaybillError) -> HTTPRequestPlan {
        let request = try addresses.withholding(request)
        try HTTPRequestPlan.check(request, method)
        try HTTPRequestPlan.check(configuration.headers)
        var plan = HTTPRequestPlan(
            method: method,
            target: try (stated.map { HTTPTarget($0) } ?? base).appending(request.topic),
            headers: headers(of: request, at: stated),
            body: request.body
        )
        plan.topic = request.topic ?? ""
        plan.isForAnyHost = stated == nil
        return plan
    }

    /// The configuration's fields below the entry's, with credentials and content type.
    ///
    /// Those of the configuration do not go to another origin than the service's.
    private func headers(of request: Request, at stated: ServiceAddress?) -> HTTPHeaders {
        var headers = HTTPHeaders(request.headers)
        func add(_ name: String, _ value: String) {
            if headers.first(name) == nil { headers.append(name: name, value: value) }
        }
        if let contentType = request.contentType, !request.body.isEmpty {
            add("Content-Type", contentType)
        }
        // That of a URL of the credentials goes with them.
        if request.command[.url] != nil, let userName = stated?.userName {
            add("Authorization", HTTPRequestPlan.basic(userName, stated?.password ?? ""))
        }
        guard stated?.isForeign != true else { return headers }
        let own = headers
        for field in configuration.headers where own.first(field.name) == nil {
            headers.append(name: field.name, value: field.value)
        }
        if let userName = configuration.userName {
            add("Authorization", HTTPRequestPlan.basic(userName, configuration.password ?? ""))
        }
        return headers
    }

    private func checkSubscription(_ request: Request) throws(WaybillError) {
        try checkQoS(request)
        try refuse([.severalTopics: request.hasSeveralTopics], request)
        var options = OptionReader(request)
        let method = options.take(.method)
        // Read by the stream and its listener.
        _ = options.take(.eventTypes)
        _ = options.take(.lastEventID)
        _ = try addresses.address(statedIn: &options, of: request)
        _ = options.take(.buffering)
        _ = options.take(.waitsForConnection)
        try options.finish(for: Self.name)
        // Refused now, not at the first attempt.
        _ = try plan(ofStream: request, method: method)
    }

    /// Checks a connect or a disconnect, which nothing is sent for.
    private func checkBare(_ request: Request) throws(WaybillError) {
        guard request.topic == nil, request.body.isEmpty else {
            throw unsupported("topic or body of a \(request.command.name)", request)
        }
        try refuse([.headers: request.statesHeaders], request)
        try OptionReader(request).finish(for: Self.name)
    }

    private func refuse(
        _ stated: KeyValuePairs<OptionName, Bool>,
        _ request: Request
    ) throws(WaybillError) {
        try WaybillError.refuse(stated, by: Self.name, request)
    }

    private func checkQoS(_ request: Request) throws(WaybillError) {
        guard request.command.qos != .exactlyOnce else {
            throw .unsupported(qosAbove: .atLeastOnce, by: Self.name, request)
        }
    }

    private func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: Self.name, what, request)
    }
}
