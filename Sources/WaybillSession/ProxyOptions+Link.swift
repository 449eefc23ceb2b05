import HTTPWire
package import Waybill
package import WaybillLink

extension ProxySettings {
    /// Converts the app's options into the link's settings.
    ///
    /// - Parameter options: The app's options.
    /// - Throws: `invalidEntry` for an invalid host or port, for header fields that cannot be sent, and for a
    ///   user name with a colon.
    package init(_ options: ProxyOptions) throws(WaybillError) {
        guard let port = UInt16(exactly: options.port), port > 0 else {
            throw WaybillError(.invalidEntry, "the proxy's port is not between 1 and 65535")
        }
        guard let host = ServiceAddress.host(options.host) else {
            throw WaybillError(.invalidEntry, "the proxy has no possible host")
        }
        self.init(
            endpoint: Endpoint(host: host, port: port),
            headers: HTTPHeaders(options.headers),
            exemptHosts: try Self.exemptHosts(options)
        )
        if let name = headers.reservedName {
            throw WaybillError(.invalidEntry, "the proxy's header \(name) is not to be set")
        }
        try addCredentials(options)
        do { try headers.check() } catch {
            throw WaybillError(.invalidEntry, "this cannot be sent to the proxy: \(error)")
        }
    }

    private static func exemptHosts(_ options: ProxyOptions) throws(WaybillError) -> [String] {
        try options.exemptHosts.map { exempt throws(WaybillError) in
            guard let host = ServiceAddress.host(exempt), host != "." else {
                throw WaybillError(.invalidEntry, "no host can be called as one exempt is")
            }
            return host
        }
    }

    private mutating func addCredentials(_ options: ProxyOptions) throws(WaybillError) {
        guard options.userName != nil || options.password != nil,
            headers.first("proxy-authorization") == nil
        else { return }
        let userName = options.userName ?? ""
        let password = options.password ?? ""
        // Neither may contain control characters, and the first colon ends the name (RFC 7617, 2).
        guard !userName.utf8.contains(UInt8(ascii: ":")),
            (userName + password).unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }
            )
        else {
            throw WaybillError(.invalidEntry, "such credentials cannot be sent to the proxy")
        }
        headers.append(
            name: "Proxy-Authorization",
            value: Self.basicCredentials(userName: userName, password: password)
        )
    }
}

extension LinkEnvironment {
    /// Returns the same environment with streams through a proxy, if one is set.
    ///
    /// TLS to the server runs in the tunnel.
    ///
    /// - Parameter options: The app's proxy options; nil without a proxy.
    /// - Returns: The environment.
    /// - Throws: `invalidEntry` for invalid options.
    package func proxied(by options: ProxyOptions?) throws(WaybillError) -> LinkEnvironment {
        guard let options else { return self }
        var copy = self
        copy.dialer = dialer.proxied(by: try ProxySettings(options))
        return copy
    }
}
