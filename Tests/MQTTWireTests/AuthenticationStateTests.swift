import MQTTWire
import Testing
import WireCore

/// The values that decide whose turn it is: each state with each event.
@Suite("MQTT: turns of an authentication") struct AuthenticationStateTests {
    enum ClientState: CaseIterable {
        case unused, connectingServer, connectingClient, idle, repeatingServer, repeatingClient
    }

    enum ClientEvent: CaseIterable {
        case proceed, success, reauthenticate, connack, answer, again
    }

    static func auth(_ code: MQTTReasonCode) -> MQTTAuth {
        var auth = MQTTAuth(reasonCode: code)
        auth.properties.authenticationMethod = "m"
        return auth
    }

    private static let later = WireInstant(nanoseconds: 5)

    static func client(_ state: ClientState) throws -> MQTTClientAuthentication {
        var value = MQTTClientAuthentication(method: state == .unused ? nil : "m")
        var connack = MQTTConnackPacket()
        connack.properties.authenticationMethod = "m"
        switch state {
        case .unused, .connectingServer: break
        case .connectingClient: _ = try value.receive(auth(.continueAuthentication))
        case .idle: try value.receive(connack)
        case .repeatingServer, .repeatingClient:
            try value.receive(connack)
            _ = try value.reauthenticate(nil, until: later)
            if state == .repeatingClient { _ = try value.receive(auth(.continueAuthentication)) }
        }
        return value
    }

    /// The result of an event in words; an error is its name.
    static func result(_ event: ClientEvent, in state: ClientState) throws -> String {
        var value = try client(state)
        func name(_ step: MQTTClientAuthentication.Step) -> String {
            switch step {
            case .challenge: "challenge"
            case .reauthenticated: "reauthenticated"
            }
        }
        do {
            switch event {
            case .proceed: return name(try value.receive(auth(.continueAuthentication)))
            case .success: return name(try value.receive(auth(.success)))
            case .reauthenticate: return name(try value.receive(auth(.reauthenticate)))
            case .connack:
                var connack = MQTTConnackPacket()
                connack.properties.authenticationMethod = "m"
                try value.receive(connack)
                return value.isUnderWay ? "under way" : "over"
            case .answer: return "\(try value.answer(nil).reasonCode.rawValue)"
            case .again: return "\(try value.reauthenticate(nil, until: later).reasonCode.rawValue)"
            }
        } catch {
            return "\(error)".replacing(/MQTTWire\.\w+\./, with: ".")
        }
    }

    /// A row for each state: the results of the events in the order of their cases.
    static let clientRows: [(ClientState, [String])] = [
        (
            .unused,
            [
                "unexpectedAuthentication", "unexpectedAuthentication", "unexpectedAuthentication",
                "over", "authenticationNotDue", "authenticationNotDue",
            ]
        ),
        (
            .connectingServer,
            [
                "challenge", "reasonCodeNotAllowed(.auth)", "reasonCodeNotAllowed(.auth)",
                "over", "authenticationNotDue", "authenticationNotDue",
            ]
        ),
        (
            .connectingClient,
            [
                "unexpectedAuthentication", "unexpectedAuthentication", "unexpectedAuthentication",
                "unexpectedAuthentication", "24", "authenticationNotDue",
            ]
        ),
        (
            .idle,
            [
                "unexpectedAuthentication", "unexpectedAuthentication", "unexpectedAuthentication",
                "over", "authenticationNotDue", "25",
            ]
        ),
        (
            .repeatingServer,
            [
                "challenge", "reauthenticated", "reasonCodeNotAllowed(.auth)",
                "under way", "authenticationNotDue", "authenticationNotDue",
            ]
        ),
        (
            .repeatingClient,
            [
                "unexpectedAuthentication", "unexpectedAuthentication", "unexpectedAuthentication",
                "under way", "24", "authenticationNotDue",
            ]
        ),
    ]

    @Test("The client's table", arguments: clientRows)
    func clientTable(state: ClientState, results: [String]) throws {
        for (event, expected) in zip(ClientEvent.allCases, results) {
            #expect(try Self.result(event, in: state) == expected, "\(state) \(event)")
        }
        #expect(results.count == ClientEvent.allCases.count)
        #expect(Self.clientRows.count == ClientState.allCases.count)
        let isRepeating = state == .repeatingServer || state == .repeatingClient
        #expect(try Self.client(state).deadline == (isRepeating ? Self.later : nil))
    }

    /// The server's value after some packets: packets of the client by reason code, `c` a challenge, `f` a finish; and the
    /// result of the last step.
    static let serverRows: [(String, String)] = [
        ("c", "24"), ("f", "0"), ("c f", "nothing"), ("c 18", "ok"), ("c 18 f", "0"),
        ("c c", "nothing"), ("c 18 c", "24"), ("18", "unexpectedAuthentication"),
        ("c 19", "reasonCodeNotAllowed(.auth)"), ("c 00", "reasonCodeNotAllowed(.auth)"),
        ("f 18", "unexpectedAuthentication"), ("f 19", "ok"), ("f 19 c", "24"),
        ("f 19 c 18", "ok"), ("f 19 f", "0"), ("f 19 c 19", "reasonCodeNotAllowed(.auth)"),
        ("f 19 19", "unexpectedAuthentication"), ("f f", "nothing"),
    ]

    @Test("The server's table", arguments: serverRows)
    func serverTable(steps: String, expected: String) {
        func name(_ packet: MQTTAuth?) -> String {
            packet.map { "\($0.reasonCode.rawValue)" } ?? "nothing"
        }
        var value = MQTTServerAuthentication(method: "m")
        var result = ""
        for step in steps.split(separator: " ") {
            do {
                switch step {
                case "c": result = name(value.challenge(nil))
                case "f": result = name(value.finish(nil))
                default:
                    let code = MQTTReasonCode(rawValue: UInt8(step, radix: 16) ?? 0xFF)
                    try value.receive(Self.auth(code))
                    result = "ok"
                }
            } catch {
                result = "\(error)".replacing(/MQTTWire\.\w+\./, with: ".")
            }
        }
        #expect(result == expected)
    }

    @Test("A server refuses AUTH without a method, and with another one")
    func serverMethods() {
        var without = MQTTServerAuthentication()
        #expect(throws: MQTTViolation.unexpectedAuthentication) {
            try without.receive(Self.auth(.continueAuthentication))
        }
        var with = MQTTServerAuthentication(method: "x")
        _ = with.challenge(nil)
        #expect(throws: MQTTViolation.authenticationMethodChanged) {
            try with.receive(Self.auth(.continueAuthentication))
        }
    }

    @Test("The bounds of one exchange begin anew with the next")
    func bounds() throws {
        var value = try Self.client(.idle)
        for _ in 0..<3 {
            _ = try value.reauthenticate(nil, until: Self.later)
            for _ in 0..<MQTTClientAuthentication.maximumRoundCount {
                _ = try value.receive(Self.auth(.continueAuthentication))
                _ = try value.answer(nil)
            }
            _ = try value.receive(Self.auth(.success))
        }
        _ = try value.reauthenticate(nil, until: Self.later)
        var data = Self.auth(.continueAuthentication)
        data.properties.authenticationData = [UInt8](repeating: 0, count: 1 << 15)
        for _ in 0..<8 {
            _ = try value.receive(data)
            _ = try value.answer(nil)
        }
        #expect(throws: MQTTViolation.authenticationTooLong) { try value.receive(data) }
    }
}
