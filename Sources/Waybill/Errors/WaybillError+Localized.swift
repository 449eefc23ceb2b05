import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension WaybillError: LocalizedError {
    /// The failure, in a sentence with the command and the topic; without the name of the code.
    ///
    /// The text is English. An app that shows errors to its users chooses its own words by ``code``.
    public var errorDescription: String? {
        var text = message.escaped
        var about: [String] = []
        if let command { about.append("command \(command)") }
        if let topic { about.append("topic \(topic.withoutQuery.excerpt)") }
        if !about.isEmpty { text += " (\(about.joined(separator: ", ")))" }
        return text
    }

    /// The reason that the peer gave, or else that of TLS, the socket or the WebSocket; nil if unknown.
    ///
    /// The text of any other ``underlying`` error, such as that of an interceptor or a decoder, is left out because it
    /// may hold part of a body.
    public var failureReason: String? {
        if let peerReason { return peerReason.excerpt }
        return switch underlying {
        case let failure as TLSFailure: failure.sentence
        case let failure as SocketFailure: failure.description
        case let failure as FailoverFailure: failure.description
        case let closure as WebSocketClosure: closure.description
        case let refusal as HTTPRefusal: refusal.description
        default: nil
        }
    }

    /// A sentence on what to do next, for the code or for the reason of a TLS failure.
    public var recoverySuggestion: String? {
        if let reason = (underlying as? TLSFailure)?.reason, let words = reason.suggestion {
            return words
        }
        if isServerBusy {
            return "Try again later, after the delay that the server has asked for, if it has."
        }
        return code.suggestion
    }
}

extension WaybillError.Code {
    /// What to do about an error with this code.
    fileprivate var suggestion: String? { Self.suggestions[self] }

    private static let suggestions: [WaybillError.Code: String] = [
        .notConnected: "Connect first, then try again.",
        .connectionLost: "Try again. What was sent may have arrived.",
        .connectionRefused:
            "Check the host, the port and the network, and that the server runs. Then try again.",
        .outOfDescriptors:
            "Close connections or files that are not needed, or raise the limit of open files.",
        .unauthorized: "Try again with other credentials or a fresh token.",
        .rejected: "Read what the server said, and change the request.",
        .timedOut: "Try again, or allow more time. What was sent may have arrived.",
        .slowConsumer:
            "Subscribe again, and take messages faster, or choose another buffer policy.",
        .unsupported:
            "Leave out what the transport or the server cannot do, or choose another transport.",
        .invalidEntry: "Correct the entry or the configuration.",
        .encodingFailed: "Correct the body. The underlying error says what is wrong with it.",
        .decodingFailed: "Ask for the type that the service sends, or skip the message.",
        .protocolViolation:
            "Try again. If it happens again, tell the operator of the server.",
        .limitExceeded: "Send less, or raise the limit that is passed.",
        .interceptorFailed: "Look at the underlying error, which is that of the interceptor.",
        .tls: "Look at the underlying error, which says why the connection is not secure.",
        .shutDown: "Make a new transport.",
    ]
}

extension TLSFailure {
    /// The reason and the detail in words.
    var sentence: String {
        let words = Self.sentences[reason] ?? reason.name
        return detail.isEmpty ? words : "\(words): \(detail.escaped)"
    }

    private static let sentences: [Reason: String] = [
        .expired: "the certificate has expired",
        .notYetValid: "the certificate is not valid yet",
        .hostMismatch: "the certificate is for another host",
        .unknownAuthority: "the authority that signed the certificate is not trusted",
        .selfSigned: "the server has signed its certificate itself",
        .wrongPurpose: "the certificate is not one for servers",
        .weakCertificate: "a key or a signature of the certificate is too weak",
        .invalidCertificate: "the certificate is not valid",
        .pinMismatch: "no certificate of the server has a pinned key",
        .certificateRequired: "the server wants a certificate from the client",
        .certificateRefused: "the server refuses the certificate of the client",
        .noCommonProtocol: "client and server have no TLS version, cipher or protocol in common",
        .notTLS: "the server does not speak TLS",
        .required: "the server wants TLS",
        .closed: "the server closed the connection before it was secure",
        .interrupted: "the TLS handshake broke off",
        .handshakeFailed: "the TLS handshake failed",
        .libraryMissing: "there is no TLS library",
        .invalidOptions: "the TLS options cannot be used",
    ]
}

extension TLSFailure.Reason {
    /// What to do about it; nil where the suggestion of the code is enough.
    fileprivate var suggestion: String? { Self.suggestions[self] }

    private static let suggestions: [TLSFailure.Reason: String] = [
        .expired: "Renew the certificate of the server, or set the clock of this machine.",
        .notYetValid: "Set the clock of this machine, or wait until the certificate is valid.",
        .hostMismatch:
            "Connect with a name that the certificate has as a subject alternative name, or have one made for this name.",
        .unknownAuthority: "Add the certificate of the authority to the TLS options.",
        .selfSigned: "Add the certificate of the server to the authorities of the TLS options.",
        .pinMismatch:
            "Check the pinned keys. If they are right, the connection may be intercepted.",
        .certificateRequired: "Set an identity in the TLS options.",
        .certificateRefused: "Set an identity that the server accepts.",
        .notTLS: "Check the port, or use the URL's scheme without TLS.",
        .required: "Use the URL's scheme with TLS, such as mqtts or wss.",
        .libraryMissing: "Install OpenSSL 3.",
        .invalidOptions: "Correct the TLS options.",
    ]
}
