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

    @Test("Only a DISCONNECT redirects, with two of its codes")
    func redirect() {
        let properties = MQTTProperties()
        for code in [MQTTReasonCode.useAnotherServer, .serverMoved] {
            #expect(Self.end(.disconnectedByServer(code, properties)).isRedirect)
            #expect(!Self.end(.refused(code, properties)).isRedirect)
        }
        #expect(!Self.end(.disconnectedByServer(.serverBusy, properties)).isRedirect)
        #expect(!Self.end(nil).isRedirect)
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
