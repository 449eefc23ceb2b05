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
        end.failCalls()
        #expect(codes.withLock { $0 } == [.shutDown])
    }
}
