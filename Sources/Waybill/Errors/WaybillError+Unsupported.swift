extension WaybillError {
    /// Makes the `unsupported` error for an option that a custom transport cannot carry out.
    ///
    /// - Parameters:
    ///   - option: The option.
    ///   - message: The failure, in a sentence for developers.
    ///   - request: The request, which the error names.
    /// - Returns: An error with the code `unsupported`.
    public static func unsupported(
        _ option: OptionName,
        _ message: String,
        in request: Request
    ) -> WaybillError {
        var error = WaybillError(
            .unsupported,
            message,
            topic: request.topic,
            command: request.command.name
        )
        error.option = option
        return error
    }
}
