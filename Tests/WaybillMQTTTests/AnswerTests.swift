import MQTTWire
import Testing
import Waybill
import WaybillMQTT
import WaybillSession
import WireCore

/// The server's answers as the results of calls.
@Suite("MQTT answers") struct AnswerTests {
    private static let request = Request(topic: "t", command: .subscribe)

    /// The result of a SUBSCRIBE with two filters.
    private static func grants(
        _ answer: Result<MQTTAnswer, any Error>
    ) -> Result<[MQTTGrant], WaybillError>? {
        let found = Locked<Result<[MQTTGrant], WaybillError>?>(nil)
        let call = MQTTPendingCall(subscribing: request, count: 2) { result in
            found.withLock { $0 = result }
        }
        _ = call.resolve(answer)
        return found.withLock { $0 }
    }

    private static func suback(_ codes: [MQTTReasonCode]) -> MQTTAnswer {
        .subscribed(MQTTSuback(packetIdentifier: 1, reasonCodes: codes), hasBacklog: true)
    }

    @Test("A SUBACK has a result for each filter")
    func subscribed() throws {
        let answer = Self.suback([MQTTReasonCode(rawValue: 1), .notAuthorized])
        let grants = try #require(Self.grants(.success(answer))).get()
        #expect(grants.map(\.hasBacklog) == [true, true])
        #expect(try grants.first?.result.get() == .atLeastOnce)
        let refusal = #expect(throws: WaybillError.self) { try grants.last?.result.get() }
        #expect(refusal?.code == .unauthorized)
    }

    @Test("An answer of another kind or length is an error, and so is a lost connection")
    func confusion() {
        let lost = WaybillError(.connectionLost, "lost")
        let other = MQTTAnswer.unsubscribed(MQTTUnsuback(packetIdentifier: 1))
        let rows: [(Result<MQTTAnswer, any Error>, WaybillError.Code)] = [
            (.success(other), .protocolViolation),
            (.success(Self.suback([.success])), .protocolViolation),
            (.failure(lost), .connectionLost),
        ]
        for (answer, code) in rows {
            let error = #expect(throws: WaybillError.self) { try Self.grants(answer)?.get() }
            #expect(error?.code == code)
            #expect(error?.topic == "t")
        }
        let error = #expect(throws: WaybillError.self) { try other.receipt(of: Self.request) }
        #expect(error?.code == .protocolViolation)
    }

    @Test("An UNSUBSCRIBE ends with its confirmation, or with the connection")
    func unsubscribed() {
        let refused = MQTTUnsuback(packetIdentifier: 1, reasonCodes: [.success, .notAuthorized])
        let rows: [(Result<MQTTAnswer, any Error>, [[Bool]?])] = [
            (.success(.unsubscribed(MQTTUnsuback(packetIdentifier: 1))), [[true, true]]),
            (.success(.unsubscribed(refused)), [[true, false]]),
            (.success(.published(.success, MQTTProperties())), []),
            (.failure(WaybillError(.connectionLost, "lost")), [nil]),
            (.failure(WaybillError(.timedOut, "late")), []),
            (.failure(CancellationError()), []),
        ]
        for (answer, expected) in rows {
            let ends = Locked<[[Bool]?]>([])
            let unsuback = Promise<MQTTUnsuback>()
            let call = MQTTPendingCall(unsubscribing: unsuback, count: 2) { isConfirmed in
                ends.withLock { $0.append(isConfirmed) }
            }
            _ = call.resolve(answer)
            #expect(ends.withLock { $0 } == expected)
            #expect(unsuback.result != nil)
        }
    }
}
