#if os(Linux)
    import CWaybillTLS
    package import WireCore

    /// A stream with TLS.
    package typealias TLSStream = LayerStream<TLSConnection>

    extension TLSStream {
        /// Makes one side over a stream, with a context.
        ///
        /// - Parameters:
        ///   - base: The stream of the records; connected and not started.
        ///   - context: The context, which determines the side and the settings.
        ///   - host: The name or address that a client requests.
        /// - Throws: `LinkError.tls` with `invalidSettings` for an invalid host.
        package convenience init(
            over base: any ByteStream,
            _ context: TLSContext,
            host: String
        ) throws(LinkError) {
            self.init(over: base, try TLSConnection(context, host: host))
        }
    }

    /// TLS as a layer: OpenSSL's side of one connection, the ciphertext of both directions, and the data in it.
    ///
    /// `@unchecked Sendable`, because: the stream that owns it calls it under its lock. The exception are the bytes of
    /// ``withOutbound(_:)``, which no other call changes until ``noteSent(_:)``.
    package final class TLSConnection: StreamLayer, @unchecked Sendable {
        package static var isTransparent: Bool { false }

        // Made in `init` and freed in `deinit`: valid as long as the object.
        private let pointer: UnsafeMutableRawPointer
        private let host: String
        private let showsIdentity: Bool
        private let handshakeDeadline: WireInstant?
        private var isOpen = false
        /// Whether data, and decrypted data, has arrived from the peer.
        private var hasReceived = false
        private var hasReceivedData = false

        /// - Parameters:
        ///   - context: The context that is shared with other connections.
        ///   - host: The name or address that a client requests.
        ///   - deadline: The time limit of the handshake; nil for none.
        /// - Throws: `LinkError.tls` with `invalidSettings` for an invalid name.
        init(_ context: TLSContext, host: String, by deadline: WireInstant? = nil) throws(LinkError)
        {
            handshakeDeadline = deadline
            let name = try ServerName(host)
            self.host = name.text
            showsIdentity = context.settings.identity != nil
            guard
                let pointer = waybill_tls_create(
                    context.pointer,
                    name.text,
                    name.isAddress ? 1 : 0
                )
            else { throw .tls(.invalidSettings("\(name.text) is no name for a server")) }
            self.pointer = pointer
        }

        deinit {
            waybill_tls_destroy(pointer)
        }

        // MARK: Opening

        package func open(_ input: inout ReceiveBuffer) -> Result<Void, LinkError>? {
            if !hasReceived, let first = input.withUnsafeBytes(\.first) {
                // Every record begins so (RFC 8446, 5.1).
                guard (20...23).contains(first) else { return .failure(.tls(.notTLS)) }
                hasReceived = true
            }
            var consumed = 0
            var isDone: Int32 = 0
            let result = input.withUnsafeBytes { input in
                waybill_tls_handshake(
                    pointer,
                    input.bindMemory(to: UInt8.self).baseAddress,
                    input.count,
                    &consumed,
                    &isDone
                )
            }
            input.consume(consumed)
            isOpen = isDone == 1
            switch outcome(result) {
            case .failed(let error): return .failure(error)
            case .closed: return .failure(.tls(.closed))
            case .fine: return isOpen ? .success(()) : nil
            }
        }

        package func cause(of error: LinkError?) -> LinkError {
            switch error {
            case nil, .endOfStream, .reset:
                // A server that requires a certificate may close at once. Its alert is lost if it closes with unread
                // bytes.
                if !hasReceivedData, waybill_tls_failure(pointer).lacked_certificate == 1 {
                    return .tls(.certificateRequired)
                }
                guard isOpen else { return .tls(.closed) }
                // Without close_notify, data may be missing.
                return error == .reset ? .reset : .truncated
            case let error?: return error
            }
        }

        package var deadline: WireInstant? { isOpen ? nil : handshakeDeadline }

        package func advance(to now: WireInstant) -> LinkError? {
            deadline.map { $0 <= now } == true ? .tlsTimedOut : nil
        }

        // MARK: Data

        package func decode(
            _ input: inout ReceiveBuffer,
            into space: UnsafeMutableRawBufferPointer
        ) -> (outcome: LayerOutcome, produced: Int) {
            var consumed = 0
            var produced = 0
            let result = input.withUnsafeBytes { input in
                waybill_tls_read(
                    pointer,
                    input.bindMemory(to: UInt8.self).baseAddress,
                    input.count,
                    &consumed,
                    space.bindMemory(to: UInt8.self).baseAddress,
                    space.count,
                    &produced
                )
            }
            input.consume(consumed)
            if produced > 0 { hasReceivedData = true }
            return (outcome(result), produced)
        }

        package func encode(
            _ bytes: UnsafeRawBufferPointer,
            limit: Int
        ) -> (outcome: LayerOutcome, consumed: Int) {
            var consumed = 0
            let result = waybill_tls_write(
                pointer,
                bytes.bindMemory(to: UInt8.self).baseAddress,
                bytes.count,
                limit,
                &consumed
            )
            return (outcome(result), consumed)
        }

        /// Writes close_notify.
        package func finish() {
            waybill_tls_finish(pointer)
        }

        package var holdsData: Bool { waybill_tls_readable_count(pointer) > 0 }

        package var hasOutbound: Bool { !outbound.isEmpty }

        package func withOutbound<Failure: Error>(
            _ body: (UnsafeRawBufferPointer) throws(Failure) -> Int
        ) throws(Failure) -> Int {
            try body(outbound)
        }

        /// The ciphertext to send, which does not change until ``noteSent(_:)``.
        private var outbound: UnsafeRawBufferPointer {
            var bytes: UnsafePointer<UInt8>?
            let count = waybill_tls_outbound(pointer, &bytes)
            return UnsafeRawBufferPointer(start: bytes, count: count)
        }

        package func noteSent(_ count: Int) {
            waybill_tls_sent(pointer, count)
        }

        // MARK: Results

        package var tls: TLSAgreement? {
            var count = 0
            let name = waybill_tls_protocol(pointer, &count).map { bytes in
                String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
            }
            return TLSAgreement(
                version: waybill_tls_version(pointer).map { String(cString: $0) } ?? "",
                applicationProtocol: count > 0 ? name : nil,
                isResumed: waybill_tls_is_resumed(pointer) == 1
            )
        }

        private func outcome(_ result: Int32) -> LayerOutcome {
            switch Int(result) {
            case WAYBILL_TLS_OK: .fine
            case WAYBILL_TLS_CLOSED: .closed
            default: .failed(.tls(fault(waybill_tls_failure(pointer))))
            }
        }

        private func fault(_ failure: waybill_tls_failure_t) -> TLSFault {
            let words = failure.words.map { String(cString: $0) } ?? ""
            guard failure.verification == 0 else {
                return fault(failure, words)
            }
            let lacked = failure.lacked_certificate == 1
            // RFC 8446, 6.2: first the alerts of a server that checks the client's certificate, then those of a server
            // without common parameters.
            switch failure.alert {
            case 116: return .certificateRequired
            case 40 where lacked, 42 where lacked: return .certificateRequired
            case 42...46, 48, 49, 51:
                return showsIdentity ? .certificateRefused(words) : .handshakeFailed(words)
            case 40, 70, 71, 120: return .noCommonProtocol(words)
            default: break
            }
            // Errors of OpenSSL itself: a version that is too old, or data that is no record.
            switch failure.reason {
            case 258, 266: return .noCommonProtocol(words)
            case 267: return .notTLS
            default: return .handshakeFailed(words)
            }
        }

        /// Converts a verification error of the peer's certificates; the numbers are OpenSSL's `X509_V_ERR`.
        private func fault(_ failure: waybill_tls_failure_t, _ words: String) -> TLSFault {
            switch failure.verification {
            case 9: .notYetValid
            case 10: .expired
            case 2, 19, 20, 21, 27: .unknownAuthority(failure.issuer.map { String(cString: $0) })
            case 18: .selfSigned
            case 26: .wrongPurpose
            case 50: .pinMismatch
            case 62, 64: .hostMismatch(host)
            case 63: .alternativeNameMissing(host)
            case 66, 67, 68: .weakCertificate
            default: .invalidCertificate(words)
            }
        }
    }
#endif
