import EventStreamWire
import Foundation
import HTTPWire
import MQTTWire
import STOMPWire
import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillSession
import WebSocketWire

/// Error texts consist of words, without names from inside the package.
@Suite("Texts of errors") struct ErrorTextTests {
    private static let request = Request(topic: "a/b", command: .send)

    // MARK: Every fault of every core

    private static let mqttViolations: [MQTTViolation] = [
        .reservedPacketKind, .reservedFlags(.puback), .variableByteIntegerInvalid,
        .fieldTruncated(.connack), .trailingBytes(.publish), .invalidUTF8, .nullCharacter,
        .qualityOfServiceInvalid, .packetIdentifierZero(.pubrec), .reservedBits(.pubrel),
        .protocolNameInvalid, .propertyUnknown, .protocolVersionUnsupported,
        .packetTooLarge(byteCount: 9, maximum: 8), .unexpectedPacket(.pubcomp), .topicNameInvalid,
        .topicNameMissing, .authenticationMethodMissing(.connack),
        .topicFilterInvalid, .listEmpty(.suback), .propertyNotAllowed(.unsuback),
        .propertyRepeated(.pingresp), .propertyOutOfRange(.disconnect),
        .reasonCodeNotAllowed(.auth), .passwordWithoutUserName, .packetBeforeConnack(.subscribe),
        .secondConnack, .unexpectedSessionPresent, .receiveMaximumExceeded, .topicAliasInvalid,
        .topicAliasUnknown, .topicAliasesTooLong,
        .reasonCodeCountWrong(.unsubscribe), .unexpectedAuthentication,
        .unrequestedProblemInformation, .unrequestedResponseInformation,
        .authenticationMethodChanged, .authenticationTooLong,
    ]

    private static let mqttFilterFaults: [MQTTTopicFilter.Fault] = [
        .empty, .tooLong, .nullCharacter, .multiLevelWildcard, .singleLevelWildcard, .shareName,
    ]

    private static let mqttEncodingErrors: [MQTTEncodingError] =
        [
            .fieldTooLong("topic name"), .nullCharacter("topic name"), .topicNameEmpty,
            .topicNameHasWildcard, .topicFilterInvalid(.empty), .packetIdentifierMissing,
            .packetIdentifierNotAllowed, .duplicateNotAllowed, .propertyNotAllowed(.contentType),
            .propertyOutOfRange(.topicAlias), .needsVersion5, .noFilter,
            .noLocalOnSharedSubscription, .passwordWithoutUserName, .clientIdentifierMissing,
            .reasonCodeNotAllowed(.serverBusy), .packetTooLarge(byteCount: 9),
        ]

    private static let stompViolations: [STOMPViolation] = [
        .commandUnknown, .headerLineInvalid, .headerNameEmpty, .escapeUndefined, .invalidUTF8,
        .nullInHead, .carriageReturnInvalid, .contentLengthInvalid, .frameEndMissing,
        .lineTooLong(maximum: 8), .tooManyHeaders(maximum: 8), .bodyTooLarge(maximum: 8),
        .tooManyFramesHeld(maximum: 8), .bodyNotAllowed(.receipt), .commandNotAllowed(.send),
        .headerMissing(.message, "destination"), .headerInvalid(.connected, "version"),
        .versionNotOffered, .heartBeatInvalid, .frameBeforeConnected(.message), .connectedTwice,
        .subscriptionRepeated, .subscriptionUnknown, .transactionRepeated, .transactionUnknown,
    ]

    private static let stompEncodingErrors: [STOMPEncodingError] = [
        .headerNameEmpty, .nullCharacter("x"), .lineBreakNotAllowed("x"), .colonNotAllowed("x"),
        .contentLengthNotAllowed, .bodyNotAllowed(.subscribe), .commandNotAllowed(.nack),
    ]

    private static let httpViolations: [HTTPViolation] = [
        .headTooLarge(maximum: 8), .tooManyFields(maximum: 8), .malformedStatusLine,
        .malformedRequestLine, .unsupportedVersion, .malformedField, .invalidFieldValue,
        .obsoleteLineFolding, .bareCarriageReturn, .invalidContentLength,
        .unsupportedTransferCoding, .malformedChunk, .incompleteBody,
    ]

    private static let httpEncodingErrors: [HTTPEncodingError] = [
        .invalidMethod, .invalidTarget, .invalidFieldName("x y"), .invalidFieldValue(name: "x"),
    ]

    private static let webSocketViolations: [WebSocketViolation] = [
        .reservedBits, .reservedOpcode(3), .malformedLength, .unmaskedFrame, .maskedFrame,
        .controlFrameTooLong, .fragmentedControlFrame, .unexpectedContinuation,
        .messageInterrupted, .invalidText, .messageTooBig(maximum: 8), .malformedClose,
        .invalidCloseCode(5), .invalidCompressedData, .unexpectedText,
    ]

    private static let handshakeFaults: [WebSocketHandshakeFault] = [
        .http(.malformedStatusLine), .endOfStream, .noUpgrade, .noConnectionUpgrade,
        .wrongAcceptKey, .unexpectedSubprotocol, .missingSubprotocol, .unexpectedExtension,
    ]

    private static let eventStreamViolations: [EventStreamViolation] = [
        .lineTooLong(maximum: 8)
    ]

    private static let tlsFaults: [TLSFault] = [
        .expired, .notYetValid, .hostMismatch("h"), .alternativeNameMissing("h"),
        .unknownAuthority(), .selfSigned, .wrongPurpose, .weakCertificate,
        .invalidCertificate("w"), .pinMismatch, .certificateRequired, .certificateRefused("w"),
        .noCommonProtocol("w"), .notTLS, .required, .closed, .interrupted("w"),
        .handshakeFailed("w"),
        .libraryMissing("w"), .invalidSettings("w"),
    ]

    private static var linkErrors: [LinkError] {
        let head = HTTPResponseHead(status: 403, reason: "Forbidden")
        let others: [LinkError] = [
            .nameNotResolved(host: "h", reason: "no such name"), .refused,
            .unreachable(errorNumber: 113), .timedOut, .reset, .endOfStream, .closed, .cancelled,
            .system(errorNumber: 24, call: "socket"), .system(errorNumber: 23, call: "socket"),
            .system(errorNumber: 13, call: "connect"), .upgradeRefused(head, body: []),
            .upgradeInvalid(.invalidSubprotocol("x y")), .upgradeInvalid(.reservedField("host")),
            .webSocketClosed(.internalError, reason: "why"), .silent, .pathLost, .tlsTimedOut,
            .truncated, .proxy(.refused), .proxyRefused(head, body: []), .unsupported("TCP"),
            .localNetworkDenied,
        ]
        return others + handshakeFaults.map { .upgradeFailed($0) }
            + webSocketViolations.map { .webSocketViolation($0) } + tlsFaults.map { .tls($0) }
            + httpViolations.map { .proxyViolation($0) }
            + httpEncodingErrors.flatMap { [.proxyInvalid($0), .upgradeInvalid(.http($0))] }
    }

    private static var mqttErrors: [WaybillError] {
        let encoding = mqttEncodingErrors + mqttFilterFaults.map { .topicFilterInvalid($0) }
        let properties = MQTTPropertyIdentifier.allCases.map {
            MQTTEncodingError.propertyOutOfRange($0)
        }
        let others: [MQTTSendError] = [
            .notConnected, .packetTooLarge(byteCount: 9, maximum: 8),
            .qualityOfServiceNotSupported(maximum: .atMostOnce), .retainNotSupported,
            .wildcardSubscriptionsNotSupported, .sharedSubscriptionsNotSupported,
            .subscriptionIdentifierNotAllowed, .noPacketIdentifierLeft,
        ]
        let sending = others + (encoding + properties).map { .encoding($0) }
        let reasons = MQTTReasonCode.names.map(\.code)
        let closures: [MQTTClosure] =
            [.packetSizeTooSmall(1), .connectTimedOut, .keepAliveTimedOut, .endOfStream]
            + mqttViolations.map { .violation($0) }
            + reasons.map { .refused($0, MQTTProperties()) }
            + reasons.map { .disconnectedByServer($0, MQTTProperties()) }
        return sending.map { MQTTErrorMapping.error($0, request) }
            + closures.compactMap { MQTTErrorMapping.error($0) }
    }

    private static var stompErrors: [WaybillError] {
        let others: [STOMPSendError] = [
            .notConnected, .noVersion, .hostMissing, .destinationMissing, .headerReserved("id"),
            .notSupported(.v1_0), .subscriptionIDTaken, .subscriptionUnknown, .transactionOpen,
            .transactionUnknown, .receiptTaken,
        ]
        let sending = others + stompEncodingErrors.map { .encoding($0) }
        let frame = STOMPErrorFrame(headers: ["message": "no"], body: [])
        let closures: [STOMPClosure] =
            [
                .refused(frame), .error(frame), .connectTimedOut, .heartBeatMissed, .endOfStream,
                .answeredInHTTP,
            ]
            + stompViolations.map { .violation($0) }
        return sending.map { STOMPMapping.error($0, request) }
            + closures.compactMap { STOMPMapping.error($0) }
    }

    private static var eventStreamErrors: [WaybillError] {
        let http: [HTTPClosure] =
            [.closed, .unexpectedResponse, .responseTimedOut, .idleTimedOut, .endOfStream]
            + httpViolations.map { .violation($0) }
        let sending: [HTTPRequestError] = [.busy] + httpEncodingErrors.map { .encoding($0) }
        let head = HTTPResponseHead(status: 403, reason: "Forbidden")
        let streams: [EventStreamClosure] =
            [.refused(head, body: []), .unknownCoding("br"), .invalidCoding]
            + eventStreamViolations.map { .violation($0) } + http.map { .connection($0) }
        return http.map { SSEMapping.error($0) } + sending.map { SSEMapping.error($0) }
            + streams.compactMap { SSEMapping.error($0) }
    }

    // MARK: What texts must not have

    /// The words of a text that look like Swift names, or like the storage of a value.
    private static func namesFromInside(_ text: String) -> [String] {
        let words = text.split { !$0.isLetter && !$0.isNumber }
        let names = words.filter { word in
            word.first?.isLowercase == true && word.contains(where: \.isUppercase)
        }
        let marks = ["Optional(", "maximum:", "byteCount:", "name:", "Wire.", "Waybill", "(\""]
        return names.map(String.init) + marks.filter(text.contains)
    }

    @Test("A name from inside is found where there is one")
    func finder() {
        for text in [
            "cannot be sent: topicNameHasWildcard", "MQTTWire.MQTTPacketKind.puback",
            "lineTooLong(maximum: 8)",
        ] {
            #expect(!Self.namesFromInside(text).isEmpty)
        }
        #expect(Self.namesFromInside("QoS 2 over a WebSocket (0x97), OpenSSL").isEmpty)
    }

    @Test("No text of any fault of any core has a name from inside the package")
    func texts() {
        let errors =
            Self.mqttErrors + Self.stompErrors + Self.eventStreamErrors
            + Self.linkErrors.map { WaybillError($0) }
        for error in errors {
            // The description of a `TLSFailure` begins with the name of its public reason.
            let underlying = error.underlying is TLSFailure ? nil : error.underlying
            let texts = [
                error.message, error.errorDescription, error.failureReason,
                error.recoverySuggestion, underlying.map { "\($0)" },
            ]
            for case let text? in texts {
                #expect(Self.namesFromInside(text).isEmpty, "\(text)")
                #expect(!text.isEmpty)
            }
            #expect(error.errorDescription != nil && error.recoverySuggestion != nil, "\(error)")
        }
        #expect(errors.count > 250)
    }

    /// The number of cases of an enum, counted in its source. Each case has its own line.
    private static func caseCount(_ name: String, in path: String) throws -> Int {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let source = try String(
            contentsOf: root.appendingPathComponent("Sources/\(path)"),
            encoding: .utf8
        )
        let body = try #require(source.components(separatedBy: "enum \(name)").dropFirst().first)
        let end = body.range(of: "\n}")?.lowerBound ?? body.endIndex
        let indented = body.range(of: "\n    }\n")?.lowerBound ?? body.endIndex
        // The cases of a `switch` are indented further.
        let cases = body[..<min(end, indented)].split(separator: "\n").filter {
            $0.drop(while: { $0 == " " }).hasPrefix("case ")
        }
        let depths = cases.map { $0.prefix(while: { $0 == " " }).count }
        return depths.count { $0 == depths.min() }
    }

    @Test("The lists of faults are complete")
    func complete() throws {
        let lists: [(name: String, path: String, count: Int)] = [
            ("MQTTViolation", "MQTTWire/Values/MQTTViolation.swift", Self.mqttViolations.count),
            (
                "MQTTEncodingError", "MQTTWire/Values/MQTTEncodingError.swift",
                Self.mqttEncodingErrors.count
            ),
            ("Fault", "MQTTWire/Topics/MQTTTopicFilter.swift", Self.mqttFilterFaults.count),
            ("STOMPViolation", "STOMPWire/Values/STOMPViolation.swift", Self.stompViolations.count),
            (
                "STOMPEncodingError", "STOMPWire/Values/STOMPSendError.swift",
                Self.stompEncodingErrors.count
            ),
            ("HTTPViolation", "HTTPWire/HTTPViolation.swift", Self.httpViolations.count),
            ("HTTPEncodingError", "HTTPWire/HTTPRequestHead.swift", Self.httpEncodingErrors.count),
            (
                "WebSocketViolation", "WebSocketWire/Frames/WebSocketViolation.swift",
                Self.webSocketViolations.count
            ),
            (
                "WebSocketHandshakeFault", "WebSocketWire/Connection/WebSocketMessage.swift",
                Self.handshakeFaults.count
            ),
            ("TLSFault", "WaybillLink/TLS/TLSFault.swift", Self.tlsFaults.count),
        ]
        for list in lists {
            let count = try Self.caseCount(list.name, in: list.path)
            #expect(count == list.count, "\(list.name)")
        }
    }

    // MARK: What texts must have

    @Test("Every code says what to do next, and texts never show a body, a query or a header")
    func suggestions() {
        let codes: [WaybillError.Code] = [
            .notConnected, .connectionLost, .connectionRefused, .outOfDescriptors, .unauthorized,
            .rejected, .timedOut, .slowConsumer, .unsupported, .invalidEntry, .encodingFailed,
            .decodingFailed, .protocolViolation, .limitExceeded, .interceptorFailed, .tls,
            .shutDown,
        ]
        var seen: Set<String> = []
        for code in codes {
            let error = WaybillError(code, "it failed", topic: "a?token=s3cret", command: "send")
            let suggestion = error.recoverySuggestion ?? ""
            #expect(suggestion.hasSuffix("."), "\(code.name)")
            seen.insert(suggestion)
            #expect(error.errorDescription == "it failed (command send, topic a?…)")
            #expect(error.localizedDescription == error.errorDescription)
            #expect(error.failureReason == nil)
        }
        #expect(seen.count == codes.count)
    }

    @Test("Of a peer's text and of a topic, 256 characters are shown")
    func longTexts() {
        let text = String(repeating: "\u{E9}", count: 100_000)
        let shown = String(repeating: "\u{E9}", count: 256) + "…"
        let error = WaybillError(.rejected, "refused", topic: text, peerReason: text)
        #expect(error.failureReason == shown)
        #expect(error.description == "rejected: refused (the peer said: \(shown)), topic \(shown)")
        #expect(Message(topic: text, body: Payload()).description.hasSuffix(" from \(shown)"))
        let marks = "a" + String(repeating: "\u{301}", count: 100_000)
        let marked = WaybillError(.rejected, "refused", peerReason: marks)
        #expect(marked.failureReason.map { $0.utf8.count < 1_000 } == true)
        let refusal = HTTPRefusal(status: 500, reason: text, headers: [:], body: Payload())
        #expect(refusal.description == "500 \(shown)")
    }

    @Test("The peer's words are the reason of the failure, escaped")
    func reasons() {
        let error = WaybillError(.rejected, "refused", peerReason: "no\u{1B}[31m")
        #expect(error.failureReason == "no\\u{1b}[31m")
        let socket = WaybillError(LinkError.proxy(.refused))
        #expect(socket.failureReason == "connection refused (ECONNREFUSED, connect)")
        let tls = WaybillError(LinkError.tls(.alternativeNameMissing("localhost")))
        #expect(tls.failureReason?.contains("common name only") == true)
        #expect(tls.recoverySuggestion?.contains("subject alternative name") == true)
        struct Own: Error {}
        let own = WaybillError(.interceptorFailed, "failed", underlying: Own())
        #expect(own.failureReason == nil)
    }
}
