package import Waybill

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// The addresses of one service, and the rules for a URL that one connection states.
///
/// Where credentials go depends on the place that states them:
/// - the entry, and an interceptor that states the URL: any address that counts
/// - other interceptors: the entry's URL if it is the service's origin
/// - ``Waybill/Credentials``: the origin of their own URL; without one, the service
/// - the configuration: the service, which is the transport's URL and its other hosts
package struct ServiceAddresses: Sendable {
    private let protocolName: String
    private let schemes: [ServiceAddress.Scheme]
    /// The address of the transport's URL first; empty for a check without a transport.
    private var known: [ServiceAddress] = []

    /// Makes the addresses of a protocol, of which none is known yet.
    ///
    /// - Parameters:
    ///   - protocolName: The protocol, such as `MQTT`.
    ///   - schemes: The supported schemes, the most common one first.
    package init(for protocolName: String, schemes: [ServiceAddress.Scheme]) {
        self.protocolName = protocolName
        self.schemes = schemes
    }

    /// The same with the addresses of a transport.
    package func knowing(_ addresses: [ServiceAddress]) -> ServiceAddresses {
        var copy = self
        copy.known = addresses
        return copy
    }

    /// Reads the URL of a transport.
    ///
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL.
    package func home(_ url: URL) throws(WaybillError) -> ServiceAddress {
        try ServiceAddress(url, for: protocolName, schemes: schemes)
    }

    /// Reads the URL of one connection.
    ///
    /// - Throws: `unsupported` with the option for another scheme; `invalidEntry` for an invalid URL, and for one without
    ///   TLS where the transport's has TLS.
    package func address(of url: URL) throws(WaybillError) -> ServiceAddress {
        var address: ServiceAddress
        do throws(WaybillError) {
            address = try home(url)
        } catch {
            var refusal = error
            if error.code == .unsupported { refusal.option = .url }
            throw refusal
        }
        if let home = known.first {
            guard address.scheme.isSecure || !home.scheme.isSecure else {
                throw WaybillError(
                    .invalidEntry,
                    "\(address.scheme.name):// would drop the TLS of \(home.scheme.name)://"
                )
            }
            address.isForeign = !known.contains { $0.hasSameOrigin(as: address) }
        }
        return address
    }

    /// Takes the URL of a request.
    ///
    /// - Returns: The address; nil where the request states none.
    /// - Throws: The errors of ``address(of:)``, about the request.
    package func address(
        statedIn options: inout OptionReader,
        of request: Request
    ) throws(WaybillError) -> ServiceAddress? {
        guard let url = options.take(.url) else { return nil }
        do throws(WaybillError) { return try address(of: url) } catch { throw error.about(request) }
    }

    /// Returns a request without what interceptors have added, if its entry states a URL of another origin.
    ///
    /// They may be secrets of the service, such as a token. An interceptor that states the URL itself knows where its
    /// secrets go.
    ///
    /// - Throws: The errors of ``address(of:)``, about the request.
    package func withholding(_ request: Request) throws(WaybillError) -> Request {
        guard let url = request.command[.url], let original = request.chain?.original,
            original.command[.url] == url
        else { return request }
        var options = OptionReader(request)
        guard try address(statedIn: &options, of: request)?.isForeign == true else {
            return request
        }
        var copy = request
        copy.topic = original.topic
        copy.headers = original.headers
        // No secret: without it a repeated request could be carried out twice.
        if let key = request.headers[Self.idempotencyKey] {
            copy.headers[Self.idempotencyKey] = key
        }
        copy.command[.userName] = original.command[.userName]
        copy.command[.password] = original.command[.password]
        copy.command[.upgradeHeaders] = original.command[.upgradeHeaders]
        return copy
    }

    private static let idempotencyKey = "Idempotency-Key"

    /// Decides between the URL of a command and that of its credentials.
    ///
    /// - Parameters:
    ///   - option: The address that the command states.
    ///   - credentials: The address that the credentials state.
    /// - Returns: The address that counts, nil for the service's; and whether the credentials go there.
    package static func settle(
        option: ServiceAddress?,
        credentials: ServiceAddress?
    ) -> (address: ServiceAddress?, credentialsGo: Bool) {
        guard let option else { return (credentials, true) }
        return (option, credentials.map { $0.hasSameOrigin(as: option) } ?? !option.isForeign)
    }
}
