package import MQTTWire
package import Waybill
package import WaybillSession

/// The server's answer to a request.
package enum MQTTAnswer: Sendable {
    case published(MQTTReasonCode, MQTTProperties)
    /// With whether retained messages of an earlier SUBSCRIBE may follow, too.
    case subscribed(MQTTSuback, hasBacklog: Bool)
    case unsubscribed(MQTTUnsuback)
    /// The exchange of a received message is over.
    case completed

    /// The error for an answer of another kind.
    private static var confusion: WaybillError {
        WaybillError(.protocolViolation, "the answer belongs to another request")
    }

    /// The receipt of a PUBLISH.
    package func receipt(of request: Request) throws(WaybillError) -> Receipt {
        guard case .published(let code, let properties) = self else { throw Self.confusion }
        return try MQTTErrorMapping.receipt(request, code, properties)
    }

    /// What the SUBACK says of each filter.
    fileprivate func grants(_ count: Int, _ request: Request) throws(WaybillError) -> [MQTTGrant] {
        guard case .subscribed(let suback, let hasBacklog) = self,
            suback.reasonCodes.count == count
        else { throw Self.confusion }
        return suback.reasonCodes.map { code in
            let quality = MQTTQoS(rawValue: code.rawValue).map(MQTTMapping.quality)
            let result =
                quality.map(Result.success)
                ?? .failure(MQTTErrorMapping.refusal(code, suback.properties, request))
            return MQTTGrant(result: result, hasBacklog: hasBacklog)
        }
    }

    /// The answer to an UNSUBSCRIBE.
    fileprivate func unsuback() throws(WaybillError) -> MQTTUnsuback {
        guard case .unsubscribed(let unsuback) = self else { throw Self.confusion }
        return unsuback
    }
}

/// What a SUBACK says of one filter.
package struct MQTTGrant: Sendable {
    package let result: Result<QoS, WaybillError>
    /// Whether retained messages of an earlier SUBSCRIBE may follow, too.
    package let hasBacklog: Bool
}

/// One request that waits for its acknowledgement.
package typealias MQTTPendingCall = PendingCall<MQTTAnswer>

extension PendingCall: MQTTCall where Answer == MQTTAnswer {
    /// Makes the call of a SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - count: The number of its filters.
    ///   - didAnswer: Called once: with the SUBACK, before the messages that follow it, or with the reason why none comes.
    package convenience init(
        subscribing request: Request,
        count: Int,
        didAnswer: @escaping @Sendable (Result<[MQTTGrant], WaybillError>) -> Void
    ) {
        self.init { result in
            let grants = Result { try result.get().grants(count, request) }
            didAnswer(grants.mapError { WaybillError(reporting: $0).about(request) })
        }
    }

    /// Makes the call of an UNSUBSCRIBE.
    ///
    /// - Parameters:
    ///   - answer: Resolves with the UNSUBACK.
    ///   - count: The number of filters.
    ///   - didEnd: Called before the packets that follow: with whether the server has confirmed each filter, and with nil
    ///     when the connection was lost before.
    package convenience init(
        unsubscribing answer: Promise<MQTTUnsuback>,
        count: Int,
        didEnd: @escaping @Sendable ([Bool]?) -> Void
    ) {
        self.init { result in
            let unsuback = Result { try result.get().unsuback() }
            switch unsuback {
            case .success(let unsuback):
                // 3.1.1 has no codes: UNSUBACK confirms all.
                let codes = unsuback.reasonCodes
                didEnd((0..<count).map { !(codes.indices.contains($0) && codes[$0].isFailure) })
            case .failure(let error):
                if (error as? WaybillError)?.losesRequest == true { didEnd(nil) }
            }
            answer.resolve(unsuback)
        }
    }
}
