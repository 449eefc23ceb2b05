import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WireCore

extension MockTransport {
    /// A protocol whose transport a mock stands for.
    public enum WireProtocol: CaseIterable, Hashable, Sendable {
        /// MQTT 5, as `MQTTTransport` speaks it.
        case mqtt5
        /// MQTT 3.1.1, as `MQTTTransport` speaks it when its configuration says so.
        case mqtt3_1_1
        /// STOMP 1.2, as `STOMPTransport` speaks it.
        case stomp
        /// Server-sent events, as `SSETransport` has them.
        case events

        var wildcards: Wildcards {
            switch self {
            case .mqtt5, .mqtt3_1_1: .mqtt
            case .stomp, .events: .none
            }
        }

        /// Whether one connection carries all: event streams have a connection each.
        var hasConnection: Bool { self != .events }
    }
}

/// How a mock behaves that stands for the transport of a protocol.
struct MockBehavior: Sendable {
    let wireProtocol: MockTransport.WireProtocol
    private let mqtt: MQTTRequestCheck
    private let stomp: STOMPRequestCheck
    private let events: SSERequestCheck?

    init(_ wireProtocol: MockTransport.WireProtocol) {
        self.wireProtocol = wireProtocol
        var configuration = MQTTConfiguration()
        configuration.version = wireProtocol == .mqtt3_1_1 ? .v3_1_1 : .v5
        mqtt = MQTTRequestCheck(configuration)
        stomp = STOMPRequestCheck(STOMPConfiguration())
        events = try? SSERequestCheck(url: "http://mock", configuration: SSEConfiguration())
    }

    /// Refuses what the transport refuses before any input or output, in its words.
    func check(_ request: Request) throws(WaybillError) {
        switch wireProtocol {
        case .mqtt5, .mqtt3_1_1: try mqtt.check(request)
        case .stomp: try stomp.check(request)
        case .events: try events?.check(request)
        }
    }

    /// Refuses transactions that are open already, or are not.
    func check(_ request: Request, against open: Set<WireName>) throws(WaybillError) {
        if wireProtocol == .stomp { try stomp.check(request, against: open) }
    }

    /// Whether a request makes a connection where there is none.
    func connectsOnDemand(for request: Request) -> Bool {
        switch request.command {
        case .send, .subscribe, .begin: wireProtocol.hasConnection
        default: false
        }
    }

    /// Whether a request is refused where there is no connection.
    func needsConnection(_ request: Request) -> Bool {
        switch request.command {
        case .ack, .nack, .unsubscribe, .commit, .abort: wireProtocol.hasConnection
        default: false
        }
    }

    /// How long the peer may take to answer, unless the request says it; nil where no answer is awaited.
    func timeout(of request: Request) -> Duration? {
        switch request.command {
        case .connect: return MQTTConfiguration().connectTimeout
        case .disconnect: return MQTTConfiguration().closeTimeout
        case .send(let options):
            if request.expectsReply { return MQTTConfiguration().replyTimeout }
            let isMQTT = wireProtocol == .mqtt5 || wireProtocol == .mqtt3_1_1
            guard !isMQTT || options.qos != .atMostOnce else { return nil }
        default: break
        }
        return switch wireProtocol {
        case .mqtt5, .mqtt3_1_1: MQTTConfiguration().acknowledgementTimeout
        case .stomp: STOMPConfiguration().receiptTimeout
        case .events: SSEConfiguration().responseTimeout
        }
    }
}

extension Request {
    /// How long the peer may take to answer, as the entry says it.
    var statedTimeout: Duration? {
        switch command {
        case .connect(let options): options.timeout
        case .send(let options): options.timeout
        case .subscribe(let options): options.timeout
        case .disconnect(let options): options.timeout
        default: nil
        }
    }
}
