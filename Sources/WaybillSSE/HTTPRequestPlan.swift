import HTTPWire
import Waybill
import WaybillSession
import WireCore

/// A request that can be made again: after a redirect, or as a stream's next attempt.
struct HTTPRequestPlan: Sendable {
    var method: String
    var target: HTTPTarget
    var headers: HTTPHeaders
    var body: Payload
    /// The topic of the message that it sends.
    var topic = ""
    /// The fields that hold credentials beside the usual ones.
    var secretNames: [String] = []
    /// Whether any host of the service will do: not after a redirect, which has named one.
    var isForAnyHost = true

    /// What does not follow a redirect to another origin.
    private static let credentials = ["authorization", "cookie", "proxy-authorization"]
    /// What goes with a body that goes (Fetch Standard, "request-body-header name").
    private static let describingBody = [
        "content-encoding", "content-language", "content-location", "content-type",
    ]

    /// Whether the response may be compressed; what an entry asks for itself is its own to decode.
    func invitesCompression(_ configuration: SSEConfiguration) -> Bool {
        configuration.acceptsCompression || headers.first("accept-encoding") != nil
    }

    /// The head, with the fields that only this attempt has.
    func head(
        _ configuration: SSEConfiguration,
        adding fields: [(String, String)] = []
    ) -> HTTPRequestHead {
        var all: HTTPHeaders = ["Host": target.address.hostField]
        for field in headers { all.append(name: field.name, value: field.value) }
        let codings = configuration.acceptsCompression ? HTTPContentDecoder.acceptedCodings : nil
        for (name, value) in fields + [("Accept-Encoding", codings ?? "identity")]
        where all.first(name) == nil {
            all.append(name: name, value: value)
        }
        return HTTPRequestHead(method: method, target: target.target, headers: all)
    }

    /// Puts credentials on it.
    ///
    /// - Parameters:
    ///   - credentials: The credentials.
    ///   - isReplacing: Whether they win over fields of the same names; otherwise those stay.
    /// - Returns: Whether it shows any of them.
    /// - Throws: `invalidEntry` for headers that cannot be sent.
    mutating func show(
        _ credentials: Credentials,
        replacing isReplacing: Bool
    ) throws(WaybillError) -> Bool {
        try Self.check(credentials.headers)
        var fields = HTTPHeaders(credentials.headers)
        if let userName = credentials.userName, fields.first("authorization") == nil {
            fields.append(
                name: "Authorization",
                value: Self.basic(userName, credentials.password ?? "")
            )
        }
        let present = headers
        let shown = fields.filter {
            isReplacing || present.first($0.name.asciiLowercased) == nil
        }
        headers.replace(with: HTTPHeaders(shown))
        secretNames = credentials.headers.map(\.name)
        return !shown.isEmpty
    }

    /// Credentials as a field says them (RFC 7617, 2).
    static func basic(_ userName: String, _ password: String) -> String {
        "Basic " + Base64.encode(Array("\(userName):\(password)".utf8))
    }

    /// Refuses what cannot be sent, before anything is.
    static func check(_ request: Request, _ method: String) throws(WaybillError) {
        guard HTTPSyntax.isToken(method) else {
            throw WaybillError(.invalidEntry, "the method is not a token").about(request)
        }
        // Behind its answer nothing is HTTP any more (RFC 9110, 9.3.6).
        guard method != "CONNECT" else {
            throw WaybillError(.unsupported, "CONNECT makes a tunnel, not a request").about(request)
        }
        do { try check(request.headers) } catch { throw error.about(request) }
    }

    /// Refuses headers that cannot be sent, or that this side writes itself.
    static func check(_ headers: Headers) throws(WaybillError) {
        let fields = HTTPHeaders(headers)
        if let name = fields.reservedName {
            throw WaybillError(.invalidEntry, "the header \(name) is not an entry's to set")
        }
        do { try fields.check() } catch {
            throw WaybillError(.invalidEntry, "this cannot be sent: \(error)")
        }
    }

    /// Whether a status redirects to another target (RFC 9110, 15.4).
    static func isRedirect(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    /// Returns the request that follows a redirect.
    ///
    /// - Throws: `rejected` without a `Location`, and for a redirect from `https` to `http`; `protocolViolation` for an
    ///   invalid `Location`; `unsupported` for another scheme.
    func redirected(by head: HTTPResponseHead) throws(WaybillError) -> HTTPRequestPlan {
        guard let location = head.headers.first("location") else {
            throw WaybillError(
                .rejected,
                "the server redirects to nowhere",
                peerReason: "\(head.status)"
            )
        }
        var plan = self
        plan.target = try target.redirected(to: location)
        // Without TLS, fields and bodies for this server could be read on the way, and the response could be forged.
        guard plan.target.address.scheme.isSecure || !target.address.scheme.isSecure else {
            throw WaybillError(
                .rejected,
                "the server redirects from https to http",
                peerReason: "\(head.status)"
            )
        }
        plan.isForAnyHost = false
        if !plan.target.hasSameOrigin(as: target) {
            plan.headers = HTTPHeaders(
                headers.filter { field in
                    !(Self.credentials + secretNames)
                        .contains { HTTPSyntax.areSameName($0, field.name) }
                }
            )
        }
        // As all clients do: what was a POST becomes a GET (RFC 9110, 15.4.2 to 15.4.4).
        let becomesGet =
            head.status == 303 && method != "HEAD"
            || [301, 302].contains(head.status) && method == "POST"
        if becomesGet {
            plan.method = "GET"
            plan.body = Payload()
            plan.headers = HTTPHeaders(
                plan.headers.filter { field in
                    !Self.describingBody.contains { HTTPSyntax.areSameName($0, field.name) }
                }
            )
        }
        return plan
    }
}

extension HTTPRequestPlan: CustomStringConvertible {
    /// Method and path; never the query, in which tokens travel, nor fields or body.
    var description: String {
        let bytes = target.target.utf8
        let path = bytes.prefix { $0 != UInt8(ascii: "?") }
        return "\(method) \(Substring(path))" + (path.count < bytes.count ? "?…" : "")
    }
}
