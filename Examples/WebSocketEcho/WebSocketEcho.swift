import WaybillWebSocket

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Connects to each URL in turn and sends back every message, until the server closes.
///
///     WebSocketEcho [--max BYTES] [--no-compression] URL ...
///
/// The exit code is 0 when every connection could be opened, however it ended. It is 1 when one could not be opened,
/// and 2 for invalid arguments.
@main
struct WebSocketEcho {
    static func main() async {
        var configuration = WebSocketClient.Configuration()
        // Room for every message that a conformance suite may send; the default is 1 MiB.
        configuration.maximumMessageSize = 64 << 20
        configuration.maximumWaitingSize = 64 << 20
        configuration.compressionThreshold = 0
        var urls: [String] = []
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--max":
                guard let limit = arguments.popFirst().flatMap({ Int($0) }), limit >= 0 else {
                    return leave("--max needs a number of bytes")
                }
                configuration.maximumMessageSize = limit
            case "--no-compression": configuration.compression = nil
            case let option where option.hasPrefix("-"): return leave("unknown option \(option)")
            default: urls.append(argument)
            }
        }
        guard !urls.isEmpty else {
            return leave("usage: WebSocketEcho [--max BYTES] [--no-compression] URL ...")
        }
        var hasFailed = false
        for url in urls {
            do {
                try await echo(url, configuration)
            } catch {
                report("\(url): \(error)")
                hasFailed = true
            }
        }
        if hasFailed { exit(1) }
    }

    /// Echoes over one connection until it ends.
    private static func echo(_ url: String, _ configuration: WebSocketClient.Configuration)
        async throws
    {
        let socket = try await WebSocketClient.connect(to: url, configuration: configuration)
        do {
            for try await message in socket.messages {
                try await socket.send(message)
            }
        } catch {
            // The end of a connection is the peer's decision. The client has already answered protocol violations.
            report("\(url): \(error)")
        }
        try await socket.close()
    }

    private static func report(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func leave(_ text: String) {
        report(text)
        exit(2)
    }
}
