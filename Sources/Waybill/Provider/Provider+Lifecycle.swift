// The life of the connection, for a service layer that knows only its provider.
extension Provider {
    /// Whether there is a connection now; over event streams, whether one of them is open.
    public var isConnected: Bool { states.current.isConnected }

    /// Connects now, instead of on demand at the first request.
    ///
    /// After a lost connection it does not wait for the time of the next attempt. Over event streams there is nothing to
    /// connect: each subscription opens its own stream.
    ///
    /// - Parameters:
    ///   - options: Options of the connection; what is nil is left to the transport's configuration.
    ///   - headers: MQTT 5's user properties or further headers of STOMP's CONNECT.
    /// - Returns: What the server said.
    /// - Throws: `rejected` when there is a connection already, and what ``Transport/perform(_:)`` throws;
    ///   `CancellationError`.
    @discardableResult
    public func connect(
        _ options: ConnectOptions = ConnectOptions(),
        headers: Headers = [:]
    ) async throws -> Receipt {
        try await perform(Request(topic: nil, command: .connect(options), headers: headers))
    }

    /// Sends what is under way, says goodbye and closes the connection.
    ///
    /// Requests that wait for a token or for their next attempt fail with `notConnected`. From then on requests make no
    /// connection (over event streams they do, since each has its own) until ``connect(_:headers:)`` is called. Without a connection it does nothing.
    ///
    /// - Parameter options: How to close; what is nil is left to the transport's configuration.
    /// - Throws: `unsupported` for an option that the protocol does not have, `shutDown`.
    public func disconnect(_ options: DisconnectOptions = DisconnectOptions()) async throws {
        _ = try await perform(Request(topic: nil, command: .disconnect(options)))
    }

    /// Closes the connection for a while, as an app does in the background.
    ///
    /// Streams live on, and requests wait for ``resume()``, as when a connection is lost.
    public func pause() async {
        await transport.pause()
    }

    /// Ends a pause: connects again at once, if there was a connection before.
    public func resume() {
        transport.resume()
    }

    /// Ends everything, for all providers of the transport.
    ///
    /// Requests under way fail with `shutDown`, streams end, and nothing stays behind. Calling it twice does nothing more.
    public func shutdown() async {
        endWaits()
        await transport.shutdown()
    }

    // MARK: Scopes

    /// Connects, runs a body, sends what is under way, and closes the connection, however the body ends.
    ///
    /// Each send that was awaited in the body has reached the server when this returns, also at QoS 0: the connection
    /// is closed by saying goodbye behind everything else. Where there is a connection already, the body uses it, and it
    /// is closed afterwards all the same.
    ///
    /// ```swift
    /// try await chat.withConnection {
    ///     try await chat.request(.say("hello", room: "lobby"))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - options: Options of the connection.
    ///   - body: What needs the connection.
    /// - Returns: What the body returns.
    /// - Throws: What connecting throws, and what the body throws. A task that is cancelled closes the connection in the
    ///   same way.
    public func withConnection<Result>(
        _ options: ConnectOptions = ConnectOptions(),
        _ body: () async throws -> Result
    ) async throws -> Result {
        do { try await connect(options) } catch let error as WaybillError {
            guard error.code == .rejected, await joinsConnection() else { throw error }
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

    /// Connects and stays connected until the task is cancelled; then sends what is under way and closes the connection.
    ///
    /// It has the shape of a service of `swift-service-lifecycle`: `extension Provider: @retroactive Service {}` is enough. While it
    /// runs, the transport connects again after losses, as its policy says.
    ///
    /// - Throws: What the first connection fails with, and the reason when the transport gives up connecting again.
    ///   It returns when its task is cancelled, and when a provider of the transport disconnects.
    public func run() async throws {
        do {
            try await withConnection {
                // Event streams come and go; their end is not the end of the transport.
                let endsWithConnection = !transport.isConnectionless
                for await state in states {
                    guard endsWithConnection, case .disconnected(let cause) = state else {
                        continue
                    }
                    if let cause { throw cause }
                    return
                }
            }
        } catch is CancellationError {
            return
        }
    }

    /// Waits for the connection that another request is making.
    /// - Returns: Whether there is one then.
    private func joinsConnection() async -> Bool {
        for await state in states {
            switch state {
            case .connected: return true
            case .connecting, .waiting: continue
            case .idle, .disconnected: return false
            }
        }
        return false
    }

    /// Disconnects, also in a task that is cancelled; a transport that is shut down has done so.
    private func close() async throws {
        do { try await Task { try await disconnect() }.value } catch WaybillError.Code.shutDown {}
    }
}
