import STOMPWire
import Testing
import Waybill
import WaybillTesting

/// A protocol over one kind of connection. Every test of this folder runs through all of them.
///
/// | | MQTT | STOMP | event streams |
/// | --- | --- | --- | --- |
/// | request that connects | CONNECT | CONNECT | each subscription, by a connection of its own |
/// | acknowledgement of a subscription | SUBACK | RECEIPT | 200 |
/// | acknowledgement of a send | PUBACK | RECEIPT | the response |
/// | a send in flight when the connection is lost | continues | fails, once | fails, once |
/// | a send without a connection | waits in the queue | waits in the queue | goes, by a connection of its own |
/// | a refusal of credentials | CONNACK | ERROR | 401 |
enum Way: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case mqtt311, mqtt5, mqttOverWebSocket, stomp, stompOverWebSocket, events

    var testDescription: String { rawValue }

    var service: LoopbackBroker.Service {
        switch self {
        case .mqtt311, .mqtt5: .mqtt
        case .mqttOverWebSocket: .mqttOverWebSocket
        case .stomp: .stomp
        case .stompOverWebSocket: .stompOverWebSocket
        case .events: .eventStream
        }
    }

    var isMQTT: Bool { [.mqtt311, .mqtt5, .mqttOverWebSocket].contains(self) }
    var isSTOMP: Bool { [.stomp, .stompOverWebSocket].contains(self) }
    var isOverWebSocket: Bool { [.mqttOverWebSocket, .stompOverWebSocket].contains(self) }

    /// The ways with one connection for everything. Over the others, each subscription has its own connection.
    static let shared = allCases.filter { $0 != .events }
    static let allMQTT = allCases.filter(\.isMQTT)
    static let allSTOMP = allCases.filter(\.isSTOMP)
    static let webSockets = allCases.filter(\.isOverWebSocket)
    /// The ways whose first bytes are answered by HTTP.
    static let http = webSockets + [.events]

    /// The time limit for the acknowledgement of a send (design 5.6).
    var sendLimit: Duration { isSTOMP ? .seconds(15) : .seconds(30) }

    /// The time limit for the acknowledgement of a subscription. For an event stream it is that of a connection.
    var subscribeLimit: Duration {
        isMQTT ? .seconds(30) : isSTOMP ? .seconds(15) : .seconds(10)
    }

    /// The silence after which a peer counts as gone (design 5.7), in the steps by which the clock moves. For event
    /// streams it is the limit that the test sets.
    ///
    /// For STOMP the design demands twice the interval. A margin is added, as the specification advises, since a
    /// server may check only once in each interval whether a heart-beat is due.
    var silence: [Duration] {
        isMQTT
            ? [.seconds(60), .seconds(20)]
            : isSTOMP
                ? [.seconds(10), .seconds(10) + STOMPHeartBeatClock.longestMargin]
                : [.seconds(20), .seconds(10)]
    }

    /// True when closing waits for the peer: for a receipt, or for the Close frame of a WebSocket.
    var waitsToClose: Bool { isSTOMP || isOverWebSocket }

    /// The log word of a subscription.
    var subscribeWord: String { self == .events ? "GET" : "SUBSCRIBE" }
    /// The log word of its acknowledgement.
    var subscribedWord: String { isMQTT ? "SUBACK" : isSTOMP ? "RECEIPT" : "200" }
    /// The log word of a send.
    var sendWord: String { isMQTT ? "PUBLISH" : isSTOMP ? "SEND" : "POST" }
}

/// An entry for all ways.
enum Talk: EntryType {
    case connect
    case disconnect
    case listen(String = "room", timeout: Duration? = nil)
    case say(String, to: String = "room", timeout: Duration? = nil)

    var topic: String? {
        switch self {
        case .connect, .disconnect: nil
        case .listen(let topic, _), .say(_, let topic, _): topic
        }
    }

    var command: EntryCommand {
        switch self {
        case .connect: return .connect
        case .disconnect: return .disconnect
        case .listen(_, let timeout):
            var command = EntryCommand.subscribe(qos: .atLeastOnce)
            command[.timeout] = timeout
            return command
        case .say(_, _, let timeout):
            var command = EntryCommand.send(qos: .atLeastOnce, .idempotent)
            command[.timeout] = timeout
            return command
        }
    }

    var body: EntryBody {
        if case .say(let text, _, _) = self { .text(text) } else { .none }
    }
}
