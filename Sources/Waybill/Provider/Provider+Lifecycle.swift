// The life of the connection, for code that only knows its provider.
extension Provider {
    /// Whether there is a connection now; over event streams, whether a stream is open.
    public var isConnected: Bool { states.current.isConnected }

    /// Connects now instead of at the first request.
    ///
    /// After a lost connection it does not wait until the next attempt is due. Event streams have nothing to connect:
    /// each subscription opens its own stream.
    ///
    /// - Parameters:
    ///   - options: Options of the connection; one that is absent is left to the transport's configuration.
    ///   - headers: User properties of MQTT 5, or further headers of STOMP's CONNECT.
    /// - Returns: The receipt with the server's answer.
    /// - Throws: `rejected` if there is a connection, also one that ``disconnect(_:)`` is still closing; the errors of
    ///   ``Transport/perform(_:)``; `CancellationError`.
    @discardableResult
    public func connect(
        _ options: ConnectOption...,
        headers: Headers = [:]
    ) async throws -> Receipt {
        let request = Request(topic: nil, command: .connect(options: options), headers: headers)
        return try await runner.perform(request)
    }

    /// Completes pending sends, tells the peer, and closes the connection.
    ///
    /// Requests that wait for a token or for their next attempt fail with `notConnected`. Later requests open no
    /// connection until ``connect(_:headers:)`` is called; over event streams they do, since each has its own. Without
    /// a connection the call does nothing.
    ///
    /// - Parameter options: Options for closing; one that is absent is left to the transport's configuration.
    /// - Throws: `unsupported` for an option that the protocol does not have, `shutDown`.
    public func disconnect(_ options: DisconnectOption...) async throws {
        let request = Request(topic: nil, command: .disconnect(options: options))
        _ = try await runner.perform(request)
    }

    /// Closes the connection until ``resume()``, for example while the app is in the background.
    ///
    /// Streams stay open and requests wait for ``resume()``, as after a lost connection.
    public func pause() async {
        await runner.transport.pause()
    }

    /// Ends a pause: connects again at once if there was a connection before.
    public func resume() {
        runner.transport.resume()
    }

    /// Shuts down the transport, for all its providers.
    ///
    /// Pending requests fail with `shutDown`, streams end, and all resources are released. A second call does nothing
    /// more.
    public func shutdown() async {
        runner.interception.noteDisconnect()
        await runner.transport.shutdown()
    }

    // MARK: Scopes

    /// Connects, runs a body, completes pending sends, and closes the connection, however the body ends.
    ///
    /// Each send that the body awaited has reached the server when the call returns, also at QoS 0, because the close
    /// follows all other data in order. If there already is a connection, the body uses it, and the call closes it as
    /// well.
    ///
    /// ```swift
    /// try await chat.withConnection {
    ///     try await chat.request(.say("hello", room: "lobby"))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - options: Options of the connection.
    ///   - body: The code that needs the connection.
    /// - Returns: The result of the body.
    /// - Throws: The error of connecting, or that of the body. A cancelled task closes the connection in the same way.
    public func withConnection<Result>(
        _ options: ConnectOption...,
        body: () async throws -> Result
    ) async throws -> Result {
        let connect = Request(topic: nil, command: .connect(options: options))
        do { _ = try await runner.perform(connect) } catch let error as WaybillError {
            guard error.code == .rejected, await states.reachConnection() else { throw error }
        }
        do {
            let result = try await body()
            try await close()
            return result
        } catch {
            try? await close()
            throw error
        }
    }

    /// Connects and stays connected until the task is cancelled; then completes pending sends and closes the
    /// connection.
    ///
    /// The method matches the `Service` protocol of `swift-service-lifecycle`:
    /// `extension Provider: @retroactive Service {}` is enough. While it runs, the transport reconnects after losses as
    /// its policy says.
    ///
    /// - Throws: The error of the first connection, or the reason why the transport stopped reconnecting. It returns
    ///   without an error when its task is cancelled, and when a provider of the transport disconnects.
    public func run() async throws {
        do {
            try await withConnection {
                // The end of an event stream is not the end of the transport.
                try await states.waitForEnd(endsWithConnection: !runner.transport.isConnectionless)
            }
        } catch is CancellationError {
            return
        }
    }

    /// Disconnects, also in a cancelled task; on a transport that is shut down it does nothing.
    private func close() async throws {
        do { try await Task { try await disconnect() }.value } catch WaybillError.Code.shutDown {}
    }
}
