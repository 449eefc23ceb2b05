import Foundation
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// An option in a command that has no other fault, for the table in `Documentation/Mapping.md`.
struct OptionSample: Sendable {
    /// The key.
    let option: OptionName
    /// The value in Swift, where some protocol treats another value differently.
    let value: String?
    let command: EntryCommand

    private init(_ option: some CommandOption, _ command: EntryCommand, value: String? = nil) {
        self.option = option.name
        self.value = value
        self.command = command
    }

    /// The option as the table shows it.
    var label: String { value.map { "`\(option)(\($0))`" } ?? "`\(option)`" }

    /// One sample for each pair of option and command, in the order of the table.
    static let all: [OptionSample] =
        sends + subscriptions + unsubscriptions + connects + acknowledgements + disconnects

    /// A command without options.
    static func plain(_ kind: EntryCommand.Kind) -> EntryCommand {
        switch kind {
        case .ack: .ack(message)
        case .nack: .nack(message)
        default: EntryCommand(kind)
        }
    }

    /// Each transport takes a URL of its own schemes alone.
    private static let webSocket = URL(string: "wss://host/path") ?? URL(filePath: "/")
    private static let http = URL(string: "https://host/path") ?? URL(filePath: "/")

    private static let message = Message.ID.named("m")

    private static let sends: [OptionSample] = [
        send(.timeout(.seconds(1))), send(.idempotent), send(.expectsReply),
        send(.responseTopic("r")),
        send(.correlationData([0x31])), send(.waitsForConnection),
        send(.waitsForConnection(false), value: "false"), send(.retained),
        send(.expiry(.seconds(1))), send(.payloadFormat(.text)), send(.sentOnce),
        send(.receipt(.automatic)), send(.transaction("t")), send(.contentLength(false)),
        send(.method("PUT")), send(.url(http)),
    ]

    private static let subscriptions: [OptionSample] = [
        subscribe(.timeout(.seconds(1))), subscribe(.buffering(BufferPolicy(.dropOldest))),
        subscribe(.manualAcknowledgement), subscribe(.waitsForConnection),
        subscribe(.waitsForConnection(false), value: "false"), subscribe(.noLocal),
        subscribe(.retainAsPublished), subscribe(.retainHandling(.doNotSend)),
        subscribe(.retainHandling(.send), value: ".send"), subscribe(.shareName("g")),
        subscribe(.subscriptionIdentifier(7)),
        subscribe(.subscriptionIdentifier(.omitted), value: ".omitted"),
        subscribe(.ackMode(.client)), subscribe(.receipt(.automatic)),
        subscribe(.identifier("i")), subscribe(.method("POST")),
        subscribe(.eventTypes(["a"])), subscribe(.lastEventID("1")), subscribe(.url(http)),
    ]

    private static let unsubscriptions: [OptionSample] = [
        unsubscribe(.shareName("g")), unsubscribe(.receipt(.automatic)),
    ]

    private static let connects: [OptionSample] = [
        connect(.timeout(.seconds(1))), connect(.userName("u")),
        // MQTT 3.1.1 has no password without a user name.
        connect(.password("p"), .userName("u")), connect(.keepAlive(.seconds(9))),
        connect(.upgradeHeaders(["k": "v"])), connect(.clientIdentifier("c")),
        connect(.will(Will(topic: "w", body: "x"))), connect(.cleanStart(false)),
        connect(.sessionExpiry(.seconds(60))), connect(.url(webSocket)),
    ]

    private static let acknowledgements: [OptionSample] = [
        // An `ack` with a reason code is an `invalidEntry`.
        nack(.reasonCode(.notAuthorized)), ack(.reason("r")), nack(.reason("r")),
        ack(.awaitsCompletion), nack(.awaitsCompletion), ack(.transaction("t")),
        nack(.transaction("t")), ack(.receipt(.automatic)), nack(.receipt(.automatic)),
    ]

    private static let disconnects: [OptionSample] = [
        disconnect(.timeout(.seconds(1))), disconnect(.drainTimeout(.seconds(1))),
        disconnect(.publishesWill), disconnect(.reasonCode(.administrativeAction)),
        // The session of a connection without an expiry may get none but zero.
        disconnect(.reason("r")), disconnect(.sessionExpiry(.zero)),
    ]

    private static func send(_ option: SendOption, value: String? = nil) -> OptionSample {
        OptionSample(option, .send(qos: .atLeastOnce, options: [option]), value: value)
    }

    private static func subscribe(_ option: SubscribeOption, value: String? = nil) -> OptionSample {
        OptionSample(option, .subscribe(qos: .atLeastOnce, options: [option]), value: value)
    }

    private static func unsubscribe(_ option: UnsubscribeOption) -> OptionSample {
        OptionSample(option, .unsubscribe(options: [option]))
    }

    private static func connect(
        _ option: ConnectOption,
        _ further: ConnectOption...
    ) -> OptionSample {
        OptionSample(option, .connect(options: [option] + further))
    }

    private static func ack(_ option: AckOption) -> OptionSample {
        OptionSample(option, .ack(message, options: [option]))
    }

    private static func nack(_ option: AckOption) -> OptionSample {
        OptionSample(option, .nack(message, options: [option]))
    }

    private static func disconnect(_ option: DisconnectOption) -> OptionSample {
        OptionSample(option, .disconnect(options: [option]))
    }
}
