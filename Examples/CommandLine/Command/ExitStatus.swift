import ArgumentParser
import CommandText
import Waybill

/// The exit status of the command: the one table of them.
enum ExitStatus: Int32, CaseIterable {
    case done = 0
    case failed = 1
    case nothingCame = 2
    case unreachable = 3
    case connectionLost = 4
    case unauthorized = 5
    case refused = 6
    case tls = 7
    case file = 8
    case unsupported = 9
    case violation = 10
    case loss = 11
    case usage = 64
    case interrupted = 130
    case terminated = 143

    /// The meaning, for the help.
    var meaning: String {
        switch self {
        case .done: "done; also when the reader of a pipe has closed it"
        case .failed: "failed for a reason that is not below"
        case .nothingCame: "what was waited for did not come in time"
        case .unreachable: "the server cannot be reached"
        case .connectionLost: "the connection was lost"
        case .unauthorized: "the credentials were refused"
        case .refused: "the server refused the request"
        case .tls: "the connection cannot be secured"
        case .file: "a file cannot be read or written"
        case .unsupported: "the protocol or the server lacks what was asked for"
        case .violation: "a limit or a rule of the protocol was violated"
        case .loss: "bench: messages were lost or came twice"
        case .usage: "wrong arguments, URL or settings"
        case .interrupted: "interrupted by Ctrl-C (SIGINT)"
        case .terminated: "ended by SIGTERM"
        }
    }

    /// The table, for the help.
    static var table: String {
        let lines = allCases.map { status in
            let number = String(status.rawValue)
            return "  " + String(repeating: " ", count: 3 - number.count)
                + "\(number)  \(status.meaning)"
        }
        return "EXIT STATUS:\n" + lines.joined(separator: "\n")
    }

    /// The status for the error of a request or a connection.
    init(_ error: WaybillError) {
        switch error.code {
        case .timedOut: self = error.command == "connect" ? .unreachable : .nothingCame
        case .connectionRefused, .notConnected: self = .unreachable
        case .connectionLost: self = .connectionLost
        case .unauthorized: self = .unauthorized
        case .rejected: self = .refused
        case .tls: self = .tls
        case .unsupported: self = .unsupported
        case .invalidEntry: self = .usage
        case .protocolViolation, .limitExceeded, .slowConsumer: self = .violation
        default: self = .failed
        }
    }
}

/// The end of the command with a line on standard error.
struct Failure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// What has gone wrong at a server, and what to do.
    init(_ error: WaybillError, at server: String) {
        status = ExitStatus(error)
        var text = error.message
        if let topic = error.topic, !topic.isEmpty {
            text += " (topic \(topic.prefix { $0 != "?" }))"
        }
        // The message of a socket's failure says the same.
        if error.socketFailure == nil, let reason = error.failureReason, !text.contains(reason) {
            text += ": \(reason)"
        }
        if !text.hasSuffix(".") { text += "." }
        if status == .unauthorized {
            text += " Set WAYBILL_USERNAME and WAYBILL_PASSWORD, or use --ask-password."
        } else if status == .tls {
            text += " " + (error.recoverySuggestion ?? "")
        } else if let advice = error.recoverySuggestion {
            text += " \(advice)"
        }
        message = "\(server): \(text)"
    }
}
