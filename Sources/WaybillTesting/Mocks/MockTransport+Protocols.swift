import MQTTWire
import Waybill
import WaybillMQTT
public import WaybillMock
import WaybillSSE
import WaybillSTOMP
import WaybillSession
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
    }

    /// Makes a mock without a protocol, which expects nothing.
    ///
    /// - Parameters:
    ///   - clock: The clock that measures delays.
    ///   - wildcards: The topics that mean more than one.
    public convenience init(
        clock: any Clock<Duration> = ContinuousClock(),
        wildcards: Wildcards = .mqtt
    ) {
        self.init(rules: PlainRules(wildcards: wildcards), clock: clock)
    }

    /// Makes a mock that behaves as the transport of a protocol, and expects nothing.
    ///
    /// - Parameters:
    ///   - wireProtocol: The protocol.
    ///   - clock: The clock that measures delays and timeouts. The timeouts are the defaults of that transport: 10 s for a
    ///     `connect`, 30 s for an acknowledgement of MQTT, 15 s for a receipt of STOMP, 30 s for a response of HTTP.
    public convenience init(
        like wireProtocol: WireProtocol,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(rules: ProtocolRules(wireProtocol), clock: clock)
    }
}

extension MockTransport.Wildcards {
    fileprivate func arePresent(in topic: String) -> Bool {
        self == .mqtt && topic.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    /// True for the same topic, and for a filter that matches it.
    fileprivate func match(_ filter: String, _ topic: String) -> Bool {
        if filter.hasSameBytes(as: topic) { return true }
        guard arePresent(in: filter) else { return false }
        return (try? MQTTTopicFilter(filter))?.matches(topic) ?? false
    }
}

extension MockRules {
    package func isCumulative(_ command: EntryCommand) -> Bool { command[.ackMode] == .client }

    package func shareName(of command: EntryCommand) -> String? { command[.shareName] }

    package func transaction(of command: EntryCommand) -> MockTransaction? {
        guard let name = command[.transaction] else { return nil }
        return switch command.kind {
        case .begin: .begin(name)
        case .commit: .commit(name)
        case .abort: .abort(name)
        default: .part(name)
        }
    }
}

/// The rules of a mock without a protocol.
private struct PlainRules: MockRules {
    let wildcards: MockTransport.Wildcards

    var connectivity: MockConnectivity { .assumed }
    var keepsSession: Bool { true }

    func matches(_ filter: String, _ topic: String) -> Bool { wildcards.match(filter, topic) }

    func waitsForAcknowledgement(_ command: EntryCommand) -> Bool {
        command.isSet(.manualAcknowledgement)
    }

    func timeout(of request: Request) -> Duration? { nil }

    func check(_ request: Request) throws(WaybillError) {
        guard request.command.kind == .send, wildcards.arePresent(in: request.topic ?? "") else {
            return
        }
        throw WaybillError(
            .invalidEntry,
            "the topic of a send has a wildcard, which only a subscription may have"
        )
        .about(request)
    }

    func check(_ request: Request, against open: Set<WireName>) throws(WaybillError) {}
}

/// The rules of a mock that stands for the transport of a protocol.
private struct ProtocolRules: MockRules {
    private let wireProtocol: MockTransport.WireProtocol
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

    private var isMQTT: Bool { wireProtocol == .mqtt5 || wireProtocol == .mqtt3_1_1 }

    var connectivity: MockConnectivity { wireProtocol == .events ? .perStream : .shared }
    var keepsSession: Bool { wireProtocol != .stomp }

    func matches(_ filter: String, _ topic: String) -> Bool {
        (isMQTT ? MockTransport.Wildcards.mqtt : .none).match(filter, topic)
    }

    func waitsForAcknowledgement(_ command: EntryCommand) -> Bool {
        command.isSet(.manualAcknowledgement) && (!isMQTT || command.qos != .atMostOnce)
    }

    func timeout(of request: Request) -> Duration? {
        switch request.command.code {
        case .connect: return MQTTConfiguration().timeouts.connect
        case .disconnect: return MQTTConfiguration().timeouts.close
        case .send where request.expectsReply: return MQTTConfiguration().timeouts.reply
        // MQTT does not acknowledge a message of QoS 0.
        case .send where isMQTT && request.command.qos == .atMostOnce: return nil
        default: break
        }
        return switch wireProtocol {
        case .mqtt5, .mqtt3_1_1: MQTTConfiguration().timeouts.confirmation
        case .stomp: STOMPConfiguration().timeouts.confirmation
        case .events: SSEConfiguration().timeouts.confirmation
        }
    }

    func check(_ request: Request) throws(WaybillError) {
        switch wireProtocol {
        case .mqtt5, .mqtt3_1_1: try mqtt.check(request)
        case .stomp: try stomp.check(request)
        case .events: try events?.check(request)
        }
    }

    func check(_ request: Request, against open: Set<WireName>) throws(WaybillError) {
        if wireProtocol == .stomp { try stomp.check(request, against: open) }
    }
}
