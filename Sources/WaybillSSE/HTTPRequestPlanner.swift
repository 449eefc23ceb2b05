import HTTPWire
import Waybill
import WaybillSession
import WireCore

/// Puts requests into HTTP: below the transport's URL, with the fields of its configuration.
struct HTTPRequestPlanner: Sendable {
    let base: HTTPTarget
    let configuration: SSEConfiguration

    /// What a subscription asks for.
    ///
    /// - Throws: `invalidEntry`, `unsupported` for what cannot be sent.
    func streamPlan(
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

    /// What a request asks for.
    ///
    /// - Throws: `invalidEntry`, `unsupported` for what cannot be sent.
    func plan(_ request: Request, method: String) throws(WaybillError) -> HTTPRequestPlan {
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
        let common = HTTPHeaders(configuration.headers)
        let stated = Set(headers.map { WireName($0.name.asciiLowercased) })
        for field in common where !stated.contains(field.name.asciiLowercased) {
            headers.append(name: field.name, value: field.value)
        }
        if let userName = configuration.userName {
            add("Authorization", HTTPRequestPlan.basic(userName, configuration.password ?? ""))
        }
        return headers
    }
}
