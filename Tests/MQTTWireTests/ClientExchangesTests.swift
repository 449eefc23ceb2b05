import MQTTWire
import Testing
import WireCore

/// The requests of a client and the packets that answer them, without a connection around them.
@Suite("MQTT client: exchanges") struct ClientExchangesTests {
    var exchanges = MQTTClientExchanges(inflightWindow: 2)
    var writer = MQTTPacketWriter(version: .v5, isTracing: false)
    let subscribe = MQTTClientRequest.subscribe([MQTTSubscription(filter: "a/+")], identifier: 7)

    private mutating func send(_ request: MQTTClientRequest, _ number: Int) throws {
        let deadline = WireInstant.zero.advanced(by: .seconds(number))
        try exchanges.send(request, call: Call(number), deadline: deadline, to: &writer)
    }

    private mutating func number(answering packet: MQTTPacket) throws -> Int? {
        switch try exchanges.receive(packet, to: &writer) {
        case .subscribed(let call as Call, _, _), .unsubscribed(let call as Call, _): call.number
        default: nil
        }
    }

    @Test("Only a packet of the right kind and identifier ends an exchange")
    func answers() throws {
        var here = self
        _ = here.exchanges.begin(MQTTServerLimits(), sessionPresent: false)
        try here.send(subscribe, 1)
        try here.send(.unsubscribe(["a", "b"]), 2)
        let suback = MQTTSuback(packetIdentifier: 1, reasonCodes: [.success])
        var other = suback
        for identifier: UInt16 in [2, 3] {
            other.packetIdentifier = identifier
            #expect(try here.number(answering: .suback(other)) == nil)
        }
        let codes = [MQTTReasonCode.success, .success]
        let unsuback = MQTTUnsuback(packetIdentifier: 1, reasonCodes: codes)
        for packet: MQTTPacket in [.unsuback(unsuback), .puback(.ack(1)), .pubcomp(.ack(2))] {
            #expect(try here.number(answering: packet) == nil)
        }
        #expect(throws: MQTTViolation.reasonCodeCountWrong(.suback)) {
            try here.number(answering: .suback(MQTTSuback(packetIdentifier: 1, reasonCodes: codes)))
        }
        #expect(throws: MQTTViolation.unexpectedPacket(.pingreq)) {
            try here.number(answering: .pingreq)
        }
        #expect(try here.number(answering: .suback(suback)) == 1)
        #expect(try here.number(answering: .suback(suback)) == nil, "it has ended")
        #expect(
            try here.number(answering: .unsuback(.init(packetIdentifier: 2, reasonCodes: codes)))
                == 2
        )
    }

    @Test(
        "A session that the server lacks, or that is another client's, ends the calls of exchanges",
        arguments: [(true, false, 0), (false, false, 1), (true, true, 1), (false, true, 1)]
    )
    func waitingCalls(sessionPresent: Bool, isOfOtherClient: Bool, ended: Int) throws {
        var here = self
        here.exchanges.session = MQTTSessionState(received: [7])
        let isWaiting = here.exchanges.session.receiver.await(Call(1), 7, deadline: .zero)
        #expect(isWaiting)
        if isOfOtherClient { here.exchanges.noteOtherClient() }
        let calls = here.exchanges.begin(MQTTServerLimits(), sessionPresent: sessionPresent)
        #expect(calls.count == ended)
        #expect(here.exchanges.session.isEmpty == (ended == 1))
    }

    /// The property of a CONNACK, and the bytes of a SUBSCRIBE with a wildcard and an identifier; nil if it is refused.
    static let rows: [(MQTTConnackPacket, byteCount: Int?)] = [
        (connack { _ in }, 13),
        (connack { $0.subscriptionIdentifiersAvailable = false }, 11),
        (connack { $0.sharedSubscriptionAvailable = false }, 13),
        (connack { $0.wildcardSubscriptionAvailable = false }, nil),
    ]

    static func connack(_ change: (inout MQTTProperties) -> Void) -> MQTTConnackPacket {
        var connack = MQTTConnackPacket()
        change(&connack.properties)
        return connack
    }

    @Test("A request keeps the limits of the server", arguments: rows)
    func serverLimits(connack: MQTTConnackPacket, byteCount: Int?) throws {
        var here = self
        _ = here.exchanges.begin(MQTTServerLimits(connack, version: .v5), sessionPresent: false)
        if let byteCount {
            try here.send(subscribe, 1)
            #expect(here.writer.outbound.count == byteCount)
        } else {
            #expect(throws: MQTTSendError.wildcardSubscriptionsNotSupported) {
                try here.send(subscribe, 1)
            }
            #expect(here.writer.outbound.count == 0)
        }
    }

    @Test(
        "The end returns the calls of requests, and the state is taken once",
        arguments: [true, false]
    )
    func end(keepsSession: Bool) throws {
        var here = self
        _ = here.exchanges.begin(MQTTServerLimits(), sessionPresent: false)
        try here.send(.unsubscribe(["a"]), 1)
        try here.send(subscribe, 2)
        let calls = here.exchanges.end(keepsSession: keepsSession)
        #expect(calls.map { ($0 as? Call)?.number } == [1, 2])
        #expect(here.exchanges.resume(to: &here.writer).isEmpty, "nothing was carried")
        #expect(!here.exchanges.isSessionTaken)
        #expect(here.exchanges.takeSession().isEmpty)
        #expect(here.exchanges.isSessionTaken)
    }
}
