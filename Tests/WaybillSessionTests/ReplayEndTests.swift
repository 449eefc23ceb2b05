import Testing
import WaybillLink
import WaybillSession
import WebSocketWire
import WireCore

@Suite("The end of a stream, for what is sent again") struct ReplayEndTests {
    @Test(
        "The peer has ended it, and not the network or this side",
        arguments: [
            (.endOfStream, .closed), (.reset, .closed), (.truncated, .closed),
            (.pathLost, .unrelated), (.silent, .unrelated), (.timedOut, .unrelated),
            (.closed, .unrelated), (.system(errorNumber: 113, call: "read"), .unrelated),
            (.webSocketClosed(.policyViolation, reason: ""), .closed),
            (.webSocketClosed(.messageTooBig, reason: ""), .closed),
            (.webSocketClosed(.goingAway, reason: ""), .unrelated),
            (.webSocketClosed(WebSocketCloseCode(rawValue: 1_012), reason: ""), .unrelated),
            (.webSocketClosed(WebSocketCloseCode(rawValue: 1_013), reason: ""), .unrelated),
        ] as [(LinkError, ReplaySuspicion.End)]
    )
    func table(_ error: LinkError, _ end: ReplaySuspicion.End) {
        #expect(ReplaySuspicion.End(error) == end)
    }
}
