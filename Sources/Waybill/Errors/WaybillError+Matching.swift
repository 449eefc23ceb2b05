extension WaybillError.Code {
    /// Whether an error is a ``WaybillError`` with this code, so that `catch` can match it.
    ///
    /// ```swift
    /// do {
    ///     try await chat.request(.say(message, room: "lobby"))
    /// } catch WaybillError.Code.unauthorized {
    ///     showSignIn()
    /// } catch WaybillError.Code.timedOut {
    ///     showRetry()
    /// }
    /// ```
    ///
    /// A `catch` that needs the error itself reads `catch let error as WaybillError where error.code == .timedOut`.
    ///
    /// - Parameters:
    ///   - code: The code to match.
    ///   - error: Any error.
    /// - Returns: Whether the error is a `WaybillError` with that code.
    public static func ~= (code: WaybillError.Code, error: any Error) -> Bool {
        (error as? WaybillError)?.code == code
    }
}

extension WaybillError {
    /// The same error; topic and command are added where it has none.
    package func about(topic: String?, command: String?) -> WaybillError {
        var error = self
        error.topic = self.topic ?? topic
        error.command = self.command ?? command
        return error
    }
}
