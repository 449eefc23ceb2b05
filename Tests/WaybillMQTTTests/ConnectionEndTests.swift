import MQTTWire
import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSession
import WireCore

/// The end of a connection as a value: its cause, and the calls that end with it.
@Suite("MQTT connections: the end") struct ConnectionEndTests {
    private static func end(_ closure: MQTTClosure?) -> MQTTConnectionEnd {
        var end = MQTTConnectionEnd()
        end.closure = closure
        return end
    }

    @Test(
        "The cause is the core's; the link's if the core saw only the end of the stream",
        arguments: [
            (nil, nil, nil), (nil, .timedOut, .timedOut),
            (.endOfStream, nil, .connectionLost), (.endOfStream, .timedOut, .timedOut),
            (.disconnected, nil, nil), (.disconnected, .timedOut, nil),
            (.connectTimedOut, .reset, .timedOut),
            (.refused(.notAuthorized, MQTTProperties()), .reset, .unauthorized),
            (.disconnectedByServer(.sessionTakenOver, MQTTProperties()), .timedOut, .rejected),
        ] as [(MQTTClosure?, LinkError?, WaybillError.Code?)]
    )
    func cause(_ closure: MQTTClosure?, _ error: LinkError?, _ code: WaybillError.Code?) {
        #expect(Self.end(closure).cause(error)?.code == code)
    }

    @Test(
        "This side gave the connection up, unless the link has failed or the server has spoken",
        arguments: [
            (nil, nil, true), (nil, .reset, false),
            (.endOfStream, nil, true), (.endOfStream, .reset, false),
            (.connectTimedOut, .reset, true), (.disconnected, .reset, true),
            (.refused(.serverBusy, MQTTProperties()), nil, false),
            (.keepAliveTimedOut, nil, false),
        ] as [(MQTTClosure?, LinkError?, Bool)]
    )
    func givenUp(_ closure: MQTTClosure?, _ error: LinkError?, _ isGivenUp: Bool) {
        #expect(Self.end(closure).isGivenUp(error) == isGivenUp)
    }

    @Test(
        "What an end says about the messages that are sent again",
        arguments: [
            (.endOfStream, .endOfStream, .closed), (.endOfStream, .reset, .closed),
            (.endOfStream, .truncated, .closed), (.endOfStream, .pathLost, .unrelated),
            (.endOfStream, .silent, .unrelated), (.endOfStream, .timedOut, .unrelated),
            (.endOfStream, .closed, .unrelated), (.endOfStream, nil, .unrelated),
            (.endOfStream, .system(errorNumber: 113, call: "read"), .unrelated),
            (nil, nil, .unrelated), (nil, .reset, .unrelated),
            (.disconnected, .endOfStream, .unrelated), (.connectTimedOut, nil, .unrelated),
            (.keepAliveTimedOut, .endOfStream, .unrelated),
            (.violation(.secondConnack), nil, .unrelated),
            (.refused(.serverBusy, MQTTProperties()), .endOfStream, .unrelated),
        ] as [(MQTTClosure?, LinkError?, ReplaySuspicion.End)]
    )
    func replayEnd(_ closure: MQTTClosure?, _ error: LinkError?, _ end: ReplaySuspicion.End) {
        #expect(Self.end(closure).replayEnd(error) == end)
    }

    @Test(
        "The reasons of a DISCONNECT that name a message, and those that have nothing to do with it"
    )
    func replayReasons() {
        let named: Set<UInt8> = [0x90, 0x95, 0x99]
        let unrelated: Set<UInt8> = [
            0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x96, 0x97, 0x98, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1,
            0xA2,
        ]
        for code in UInt8.min ... .max {
            let closure = MQTTClosure.disconnectedByServer(
                MQTTReasonCode(rawValue: code),
                MQTTProperties()
            )
            let end: ReplaySuspicion.End =
                code == 0x87
                ? .refused
                : named.contains(code) ? .named : unrelated.contains(code) ? .unrelated : .closed
            #expect(Self.end(closure).replayEnd(.endOfStream) == end)
            #expect(Self.end(closure).replayEnd(nil) == end)
        }
    }

    @Test("A DISCONNECT that is final leads to another connection while messages are sent again")
    func replayCause() {
        @Sendable func cause(_ code: MQTTReasonCode, _ finding: MQTTReplayFinding) -> WaybillError
            .Code?
        {
            let end = Self.end(.disconnectedByServer(code, MQTTProperties()))
            return end.cause(nil, end.blame(finding, .none))?.code
        }
        for code in [MQTTReasonCode.packetTooLarge, .protocolError] {
            #expect(cause(code, .none) == .rejected)
            #expect(cause(code, .unclear) == .connectionLost)
            #expect(cause(code, .counted(ends: 1, storedNumber: nil)) == .connectionLost)
        }
        #expect(cause(.sessionTakenOver, .unclear) == .rejected)
        #expect(cause(.notAuthorized, .none) == .unauthorized)
        #expect(cause(.notAuthorized, .counted(ends: 1, storedNumber: nil)) == .connectionLost)
        #expect(cause(.badUserNameOrPassword, .unclear) == .unauthorized)
    }

    @Test("CONNACK and DISCONNECT redirect, with two of their codes")
    func redirect() {
        var properties = MQTTProperties()
        properties.serverReference = "b:1 mqtt://c [::1]"
        let servers = [
            ServerRedirect.Server(name: "b", port: 1), .init(name: "::1", port: nil),
        ]
        for code in [MQTTReasonCode.useAnotherServer, .serverMoved] {
            let ends = [
                MQTTClosure.disconnectedByServer(code, properties), .refused(code, properties),
            ]
            for (end, isRefusal) in zip(ends, [false, true]) {
                let redirect = Self.end(end).redirect
                #expect(redirect?.reference.servers == servers)
                #expect(redirect?.reference.isPermanent == (code == .serverMoved))
                #expect(redirect?.isRefusal == isRefusal)
            }
            let nowhere = Self.end(.refused(code, MQTTProperties())).redirect
            #expect(nowhere?.reference.servers == [])
        }
        #expect(Self.end(.disconnectedByServer(.serverBusy, properties)).redirect == nil)
        #expect(Self.end(.refused(.serverBusy, properties)).redirect == nil)
        #expect(Self.end(nil).redirect == nil)
    }

    @Test(
        "An end that is followed is not that of a busy server; a chain that ends is, and is named",
        arguments: [
            (true, RedirectOutcome.ignored, false, true, false),
            (true, .ignored, true, true, false),
            (false, .ignored, true, false, false),
            (false, .ignored, false, true, false),
            (true, .followed([ServerCandidate(Endpoint(host: "b", port: 1))]), true, true, false),
            (false, .followed([ServerCandidate(Endpoint(host: "b", port: 1))]), true, false, false),
            (true, .loop([]), false, true, true), (false, .tooLong([]), false, true, true),
        ] as [(Bool, RedirectOutcome, Bool, Bool, Bool)]
    )
    func redirectCause(
        isRefusal: Bool,
        outcome: RedirectOutcome,
        hasAlternatives: Bool,
        isBusy: Bool,
        endsChain: Bool
    ) throws {
        let properties = MQTTProperties()
        let closure: MQTTClosure =
            isRefusal
            ? .refused(.useAnotherServer, properties)
            : .disconnectedByServer(.useAnotherServer, properties)
        let end = Self.end(closure)
        let cause = try #require(end.cause(nil))
        let redirect = try #require(end.redirect)
        let result = redirect.cause(cause, after: outcome, hasAlternatives)
        #expect(result.isServerBusy == isBusy)
        #expect(result.code == (isRefusal ? .connectionRefused : .connectionLost))
        #expect(result.mqttReason?.code == .useAnotherServer)
        #expect(result.message.hasPrefix("the servers refer to") == endsChain)
    }

    @Test("The calls fail at the end, with the error of the end")
    func calls() {
        let codes = Locked<[WaybillError.Code?]>([])
        let call = MQTTPendingCall { result in
            let error = #expect(throws: WaybillError.self) { try result.get() }
            codes.withLock { $0.append(error?.code) }
        }
        var end = MQTTConnectionEnd()
        end.add(call)
        #expect(codes.withLock { $0 } == [])
        end.abandonment = WaybillError(.shutDown, "over")
        end.failCalls(nil)
        #expect(codes.withLock { $0 } == [.shutDown])
    }
}
