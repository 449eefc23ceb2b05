import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A transport whose connections follow scripts. Its client identifier is `c`.
func scripted(
    _ scripts: [ScriptedByteStream],
    version: MQTTConfiguration.Version = .v3_1_1,
    clock: ManualClock = ManualClock(),
    _ change: (inout MQTTConfiguration) -> Void = { _ in }
) throws -> (MQTTTransport, Provider<MQTTEntry>) {
    var configuration = MQTTConfiguration(version: version)
    configuration.clientIdentifier = "c"
    change(&configuration)
    ScriptRecord.note(scripts)
    let transport = try MQTTTransport(
        scripts: scripts,
        clock: clock,
        configuration: configuration
    )
    return (transport, Provider(transport: transport))
}

/// Leaves every property of CONNECT out that a configuration can leave out.
func bare(_ configuration: inout MQTTConfiguration) {
    configuration.limits.receiveMaximum = nil
    configuration.limits.announcesPacketSize = false
    configuration.aliases.accepted = 0
}

/// The packets of MQTT 3.1.1 that most scripts begin with.
enum Packet {
    /// CONNECT with client identifier `c` and keep alive 60: with a clean session, and with a lasting one.
    static let connect = ("10 0D 0004 4D515454 04 02 003C 0001 63" as Hex).bytes
    static let lastingConnect = ("10 0D 0004 4D515454 04 00 003C 0001 63" as Hex).bytes
    static let connack = ("20 02 00 00" as Hex).bytes
    /// CONNACK with a session that is present.
    static let resumed = ("20 02 01 00" as Hex).bytes
    /// SUBSCRIBE to `t` with QoS 1.
    static let subscribe = ("82 06 0001 0001 74 01" as Hex).bytes
    static let suback = ("90 03 0001 01" as Hex).bytes
}

extension ScriptedByteStream {
    /// The session of a connection: a clean one, a lasting one that is new, or one that is present at the server.
    enum Session {
        case clean, new, present
    }

    /// A script that accepts the client's CONNECT, and then follows the steps.
    static func accepted(_ session: Session, _ steps: Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: opening(session) + steps)
    }

    /// The same with a clean session.
    static func accepted(_ steps: Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: opening(.clean) + steps)
    }

    /// A script that accepts the client's CONNECT and its SUBSCRIBE to `t`, and then follows the steps.
    static func subscribed(_ session: Session, _ steps: Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: opening(session) + subscription + steps)
    }

    /// The same with a clean session.
    static func subscribed(_ steps: Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: opening(.clean) + subscription + steps)
    }

    private static var subscription: [Step] { [.expect(Packet.subscribe), .reply(Packet.suback)] }

    private static func opening(_ session: Session) -> [Step] {
        switch session {
        case .clean: [.expect(Packet.connect), .reply(Packet.connack)]
        case .new: [.expect(Packet.lastingConnect), .reply(Packet.connack)]
        case .present: [.expect(Packet.lastingConnect), .reply(Packet.resumed)]
        }
    }
}
