#if os(Linux)
    import CWaybillTLS

    /// OpenSSL's side of one connection: the ciphertext of both directions, and the data in it.
    ///
    /// `@unchecked Sendable`, because: the stream that owns it calls it under its lock. The exception are the bytes of
    /// ``outbound()``, which no other call changes until ``noteSent(_:)``.
    final class TLSConnection: @unchecked Sendable {
        enum Outcome: Sendable {
            /// Complete, or as far as input and space allowed.
            case fine
            /// The peer has sent close_notify.
            case closed
            case failed(TLSFault)
        }

        /// Ciphertext to send.
        ///
        /// `@unchecked Sendable`, because: the bytes do not change until ``noteSent(_:)``, which only the one writing
        /// thread calls.
        struct Outbound: @unchecked Sendable {
            let bytes: UnsafeRawBufferPointer
        }

        // Made in `init` and freed in `deinit`: valid as long as the object.
        private let pointer: UnsafeMutableRawPointer
        private let host: String
        private let showsIdentity: Bool

        /// - Parameters:
        ///   - context: The context that is shared with other connections.
        ///   - host: The name or address that a client requests.
        /// - Throws: `LinkError.tls` with `invalidSettings` for an invalid name.
        init(_ context: TLSContext, host: String) throws(LinkError) {
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

        // MARK: Steps

        func handshake(
            _ input: UnsafeRawBufferPointer
        ) -> (outcome: Outcome, consumed: Int, isDone: Bool) {
            var consumed = 0
            var isDone: Int32 = 0
            let result = waybill_tls_handshake(
                pointer,
                input.bindMemory(to: UInt8.self).baseAddress,
                input.count,
                &consumed,
                &isDone
            )
            return (outcome(result), consumed, isDone == 1)
        }

        /// Decrypts as much as fits into the space.
        func read(
            _ input: UnsafeRawBufferPointer,
            into space: UnsafeMutableRawBufferPointer
        ) -> (outcome: Outcome, consumed: Int, produced: Int) {
            var consumed = 0
            var produced = 0
            let result = waybill_tls_read(
                pointer,
                input.bindMemory(to: UInt8.self).baseAddress,
                input.count,
                &consumed,
                space.bindMemory(to: UInt8.self).baseAddress,
                space.count,
                &produced
            )
            return (outcome(result), consumed, produced)
        }

        /// Encrypts until a number of bytes waits to be sent.
        func write(
            _ bytes: UnsafeRawBufferPointer,
            limit: Int
        ) -> (outcome: Outcome, consumed: Int) {
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
        func finish() {
            waybill_tls_finish(pointer)
        }

        /// Whether decrypted data waits to be read.
        var hasMore: Bool { waybill_tls_readable_count(pointer) > 0 }

        /// The ciphertext to send; may be empty.
        func outbound() -> Outbound {
            var bytes: UnsafePointer<UInt8>?
            let count = waybill_tls_outbound(pointer, &bytes)
            return Outbound(bytes: UnsafeRawBufferPointer(start: bytes, count: count))
        }

        /// Notes that a number of bytes of ``outbound()`` were sent.
        func noteSent(_ count: Int) {
            waybill_tls_sent(pointer, count)
        }

        // MARK: Results

        /// The negotiated properties.
        var agreement: TLSAgreement {
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

        /// Whether the server requested a certificate and this side had none.
        var lacksIdentity: Bool { waybill_tls_failure(pointer).lacked_certificate == 1 }

        private func outcome(_ result: Int32) -> Outcome {
            switch Int(result) {
            case WAYBILL_TLS_OK: .fine
            case WAYBILL_TLS_CLOSED: .closed
            default: .failed(fault(waybill_tls_failure(pointer)))
            }
        }

        private func fault(_ failure: waybill_tls_failure_t) -> TLSFault {
            let words = failure.words.map { String(cString: $0) } ?? ""
            guard failure.verification == 0 else { return fault(failure.verification, words) }
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
        private func fault(_ verification: Int32, _ words: String) -> TLSFault {
            switch verification {
            case 9: .notYetValid
            case 10: .expired
            case 2, 19, 20, 21, 27: .unknownAuthority
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
