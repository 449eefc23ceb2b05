import WireCore

/// What a client asks when it opens a connection (STOMP 1.2, Connecting).
package struct STOMPConnect: Sendable {
    /// The versions to offer; sent in ascending order, each once.
    package var versions: [STOMPVersion]
    /// The virtual host, which 1.1 and 1.2 demand.
    package var host: String?
    /// The user.
    package var login: String?
    /// The user's secret.
    package var passcode: String?
    /// What this side can give and wants to hear; 1.0 has no heart-beats.
    package var heartBeat: STOMPHeartBeat
    /// Further headers, which go last.
    package var headers: STOMPHeaders
    /// Whether the command is STOMP, which 1.0 servers do not know (Connecting: SHOULD be CONNECT).
    package var usesSTOMPCommand: Bool

    package init(
        versions: [STOMPVersion] = STOMPVersion.allCases,
        host: String? = nil,
        login: String? = nil,
        passcode: String? = nil,
        heartBeat: STOMPHeartBeat = STOMPHeartBeat(outgoing: .seconds(10), incoming: .seconds(10)),
        headers: STOMPHeaders = STOMPHeaders(),
        usesSTOMPCommand: Bool = false
    ) {
        self.versions = versions
        self.host = host
        self.login = login
        self.passcode = passcode
        self.heartBeat = heartBeat
        self.headers = headers
        self.usesSTOMPCommand = usesSTOMPCommand
    }

    /// Whether nothing but 1.0 is offered, which knows neither versions nor hosts nor heart-beats.
    private var isOnly1_0: Bool { !versions.contains { $0 > .v1_0 } }

    /// Checks that this can be sent, before there is a connection to send it over.
    /// - Throws: `STOMPSendError`, as ``STOMPClientConnection/connect(_:at:)`` would.
    package func check() throws(STOMPSendError) {
        let command = usesSTOMPCommand ? STOMPCommand.stomp : .connect
        try allHeaders().check(for: command, version: nil)
    }

    /// The headers in the order of sending.
    /// - Throws: `STOMPSendError` when the offer makes no sense.
    func allHeaders() throws(STOMPSendError) -> STOMPHeaders {
        guard !versions.isEmpty else { throw .noVersion }
        var all = STOMPHeaders()
        if !isOnly1_0 {
            guard host != nil else { throw .hostMissing }
            let offered = STOMPVersion.allCases.filter { versions.contains($0) }
            let text = offered.map(\.text).joined(separator: ",")
            all.append(STOMPHeaderName.acceptVersion, text)
        }
        if let host { all.append(STOMPHeaderName.host, host) }
        if let login { all.append(STOMPHeaderName.login, login) }
        if let passcode { all.append(STOMPHeaderName.passcode, passcode) }
        if !isOnly1_0 { all.append(STOMPHeaderName.heartBeat, heartBeat.text) }
        try all.appendUnreserved(
            headers,
            STOMPHeaderName.acceptVersion,
            STOMPHeaderName.host,
            STOMPHeaderName.login,
            STOMPHeaderName.passcode,
            STOMPHeaderName.heartBeat
        )
        return all
    }
}

extension STOMPHeaders {
    /// Checks that a frame can carry these headers.
    ///
    /// - Parameters:
    ///   - command: What the frame says.
    ///   - version: The version that decides about escapes.
    /// - Throws: `STOMPSendError.encoding`.
    package func check(
        for command: STOMPCommand,
        version: STOMPVersion?
    ) throws(STOMPSendError) {
        var scratch = ByteWriter()
        do {
            try STOMPFrameEncoder.encode(
                command,
                self,
                body: ByteSlice.empty,
                version: version,
                into: &scratch
            )
        } catch {
            throw .encoding(error)
        }
    }

    /// Appends what a caller gave, none of which this side writes itself.
    ///
    /// - Parameters:
    ///   - headers: The caller's headers.
    ///   - reserved: What this frame's own headers are.
    /// - Throws: `STOMPSendError.headerReserved`.
    mutating func appendUnreserved(
        _ headers: STOMPHeaders,
        _ reserved: String...
    ) throws(STOMPSendError) {
        try headers.checkUnreserved()
        for field in headers.fields where reserved.contains(field.name) {
            throw .headerReserved(field.name)
        }
        append(headers)
    }

    /// Checks that there is nothing that this side writes itself on any frame.
    /// - Throws: `STOMPSendError.headerReserved`.
    func checkUnreserved() throws(STOMPSendError) {
        for field in fields
        where field.name == STOMPHeaderName.contentLength || field.name == STOMPHeaderName.receipt {
            throw .headerReserved(field.name)
        }
    }
}

/// What a server says when it opens a connection (STOMP 1.2, CONNECTED).
package struct STOMPConnected: Hashable, Sendable {
    /// The version that holds from now on.
    package let version: STOMPVersion
    /// The heart-beats that were agreed, as the client sees them.
    package let heartBeat: STOMPHeartBeat
    /// What the server calls itself.
    package let server: String?
    /// What it calls the session.
    package let session: String?
    /// All headers.
    package let headers: STOMPHeaders
}
