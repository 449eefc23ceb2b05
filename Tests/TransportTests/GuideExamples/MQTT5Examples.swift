// The examples of the guide's page about MQTT 5 (`MQTT5.md`), compiled.
import Waybill
import WaybillMQTT

/// A service with jobs that several workers share.
enum JobEntry: EntryType {
    case jobs, leave
    case refuse(Message.ID)
    case finish(Message.ID)

    var topic: String? {
        switch self {
        case .jobs, .leave: "jobs/+"
        case .refuse, .finish: nil
        }
    }

    var command: EntryCommand {
        switch self {
        case .jobs: .subscribe(qos: .atLeastOnce, .shareName("workers"))
        case .leave: .unsubscribe(.shareName("workers"))
        case .refuse(let id): .nack(id, .reasonCode(.quotaExceeded), .reason("try later"))
        case .finish(let id): .ack(id, .awaitsCompletion)
        }
    }
}

func statingProperties(_ configuration: inout MQTTConfiguration) {
    configuration.limits.receiveMaximum = nil
    configuration.aliases.accepted = 0
    configuration.limits.announcesPacketSize = false
    configuration.will = Will(
        topic: "lamps/hall",
        body: "gone",
        contentType: "text/plain",
        headers: ["reason": "lost"],
        qos: .atLeastOnce,
        delay: .seconds(30),
        .payloadFormat(.text),
        .expiry(.seconds(600))
    )
}

func readingLimits(_ transport: MQTTTransport) async throws -> Bool {
    let provider = Provider<AnyEntry>(transport: transport)
    let receipt = try await provider.request(.connect)
    if let limits = receipt.connack, !limits.sharedSubscriptionAvailable { return false }
    let present = transport.connack
    return present?.retainAvailable == true
}
