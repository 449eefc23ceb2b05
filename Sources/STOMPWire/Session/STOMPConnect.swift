import WireCore

/// The contents of a client's CONNECT (STOMP 1.2, Connecting).
package struct STOMPConnect: Sendable {
    /// The versions to offer; sent in ascending order without duplicates.
    package var versions: [STOMPVersion]
    /// The virtual host; 1.1 and 1.2 require it.
    package var host: String?
    /// The user name.
    package var login: String?
    /// The password.
    package var passcode: String?
    /// The heart-beats that this side can send and wants to receive; 1.0 has none.
    package var heartBeat: STOMPHeartBeat
    /// Further headers, sent last.
    package var headers: STOMPHeaders
    /// Whether the command is STOMP, which 1.0 servers do not support (Connecting: SHOULD be CONNECT).
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

    /// Whether only 1.0 is offered, which has neither version negotiation nor hosts nor heart-beats.
    private var isOnly1_0: Bool { !versions.contains { $0 > .v1_0 } }

    /// Checks that this can be sent, before there is a connection.
    ///
    /// - Throws: `STOMPSendError`, as ``STOMPClientConnection/connect(_:at:)`` does.
    package func check() throws(STOMPSendError) {
        let command = usesSTOMPCommand ? STOMPCommand.stomp : .connect
        try allHeaders().check(for: command, version: nil)
    }

    /// The headers in the order of sending.
    ///
    /// - Throws: `STOMPSendError` for an invalid offer.
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
    ///   - command: The command of the frame.
    ///   - version: The version, which determines the escapes.
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

    /// Appends a caller's headers; headers that this side writes itself are refused.
    ///
    /// - Parameters:
    ///   - headers: The caller's headers.
    ///   - reserved: The names of this frame's own headers.
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

    /// Checks that the headers include none that this side writes itself.
    ///
    /// - Throws: `STOMPSendError.headerReserved`.
    func checkUnreserved() throws(STOMPSendError) {
        for field in fields
        where field.name == STOMPHeaderName.contentLength || field.name == STOMPHeaderName.receipt {
            throw .headerReserved(field.name)
        }
    }
}

/// The contents of a server's CONNECTED (STOMP 1.2, CONNECTED).
package struct STOMPConnected: Hashable, Sendable {
    package let version: STOMPVersion
    /// The agreed heart-beats, from the client's point of view.
    package let heartBeat: STOMPHeartBeat
    /// The name of the server.
    package let server: String?
    /// The session's identifier.
    package let session: String?
    package let headers: STOMPHeaders

    /// Reads CONNECTED.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - version: Its version; nil if it is none of ours.
    ///   - request: The request that it answers; nil if CONNECT was not sent.
    /// - Throws: `STOMPViolation` for an answer that the request does not permit.
    init(
        _ frame: STOMPFrame,
        _ version: STOMPVersion?,
        answering request: STOMPConnect?
    ) throws(STOMPViolation) {
        guard frame.command == .connected, let request else {
            throw .frameBeforeConnected(frame.command)
        }
        guard let version, request.versions.contains(version) else { throw .versionNotOffered }
        var heartBeat = STOMPHeartBeat.none
        if version > .v1_0, let text = frame.headers.first(STOMPHeaderName.heartBeat) {
            guard let told = STOMPHeartBeat(text: text) else { throw .heartBeatInvalid }
            heartBeat = request.heartBeat.agreed(with: told)
        }
        self.version = version
        self.heartBeat = heartBeat
        headers = frame.headers.list
        server = headers.first(STOMPHeaderName.server)
        session = headers.first(STOMPHeaderName.session)
    }
}
