/// What the link uses of a connection of Network.framework.
///
/// On Apple platforms an `NWConnection` has it, in the tests a script. So the rest of the link is the same in both.
/// Reports, completions and jobs run on the connection's queue, one at a time and in order, and never inside a call of
/// one of these methods.
package protocol SystemConnection: AnyObject, Sendable {
    /// The type of received content.
    associatedtype Content: RangeReplaceableCollection & RandomAccessCollection<UInt8> & Sendable
    where Content.SubSequence: Sendable

    /// The TLS properties of the connection; nil without TLS, or before it is ready.
    var tls: TLSAgreement? { get }

    /// Starts to connect. All handlers are set before, so that no report is lost.
    func start()

    /// Sets the receiver of all reports from now on; nil for none.
    func report(to receiver: (@Sendable (NetworkReport) -> Void)?)

    /// Runs a job on the queue.
    func perform(_ job: @escaping @Sendable () -> Void)

    /// Runs a job on the queue after a time.
    func perform(after delay: Duration, _ job: @escaping @Sendable () -> Void)

    /// Receives at least one byte, or the end; one receive is pending at a time.
    ///
    /// - Parameters:
    ///   - limit: The largest number of bytes.
    ///   - completion: Gets the bytes, whether the peer has ended its write direction, and the error.
    func receive(
        atMost limit: Int,
        _ completion: @escaping @Sendable (Content?, _ isComplete: Bool, LinkError?) -> Void
    )

    /// Sends bytes, which are copied.
    func send(
        _ bytes: UnsafeRawBufferPointer,
        _ completion: @escaping @Sendable (LinkError?) -> Void
    )

    /// Ends the write direction: close_notify if there is TLS, then TCP's end.
    func finish(_ completion: @escaping @Sendable (LinkError?) -> Void)

    /// Ends the connection in an orderly way; discards what the framework has not taken yet.
    func cancel()

    /// Ends the connection at once.
    func forceCancel()
}

/// What Network.framework reports about a connection.
package enum NetworkReport: Hashable, Sendable {
    case preparing
    /// There is no way to the peer at present; `isFinal` says that waiting cannot help.
    case waiting(LinkError, isFinal: Bool)
    case ready
    case failed(LinkError)
    case cancelled
    /// Whether data can be sent and received.
    case viable(Bool)
    /// Whether a new connection would have a better path.
    case betterPath(Bool)
}

/// What the link uses of a listener of Network.framework.
package protocol SystemListener: AnyObject, Sendable {
    associatedtype Connection: SystemConnection

    /// Starts to listen, and returns after the first report that decides, or after a time limit.
    ///
    /// - Parameters:
    ///   - report: Takes each report.
    ///   - accept: Takes each new connection, which is not started.
    func start(
        _ report: @escaping @Sendable (NetworkListenerState.Event) -> Void,
        accept: @escaping @Sendable (Connection) -> Void
    )

    /// Stops listening; accepted connections stay open.
    func cancel()
}
