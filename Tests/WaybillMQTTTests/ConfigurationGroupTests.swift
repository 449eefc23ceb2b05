import Testing
import Waybill
import WaybillMQTT
import WaybillTesting

@Suite("MQTT: configuration in groups") struct ConfigurationGroupTests {
    private static func values(_ configuration: MQTTConfiguration) -> [String] {
        func text<Value>(_ value: Value) -> String { String(reflecting: value) }
        return [
            text(configuration.version), text(configuration.clientIdentifier),
            text(configuration.userName), text(configuration.password),
            text(configuration.credentials == nil), text(configuration.authenticator == nil),
            text(configuration.will), text(configuration.session), text(configuration.keepAlive),
            text(configuration.timeouts), text(configuration.limits), text(configuration.aliases),
            text(configuration.replies), text(configuration.requestsProblemInformation),
            text(configuration.connectsOnDemand), text(configuration.reconnection),
            text(configuration.offline), text(configuration.buffering),
            text(configuration.redirects), text(configuration.hints.count),
            text(configuration.tls), text(configuration.proxy), text(configuration.failover),
            text(configuration.webSocket), text(configuration.wireLogger == nil),
            text(configuration.label),
        ]
    }

    @Test("The empty initialiser and the complete one have the same defaults")
    func defaults() {
        #expect(
            Self.values(MQTTConfiguration()) == Self.values(MQTTConfiguration(version: .v5))
        )
    }

    @Test("The complete initialiser and the properties give the same configuration")
    func properties() {
        let store = InMemorySessionStore()
        let complete = MQTTConfiguration(
            version: .v3_1_1,
            clientIdentifier: "a",
            userName: "user",
            password: "secret",
            credentials: CredentialSource { _ in Credentials() },
            will: Will(topic: "gone"),
            session: .init(cleanStart: false, expiry: .seconds(1), store: store),
            keepAlive: .init(interval: .seconds(2)),
            timeouts: .init(drain: .seconds(3)),
            limits: .init(packetSize: 4),
            aliases: .init(accepted: 5),
            replies: .init(topicPrefix: "six"),
            requestsProblemInformation: false,
            connectsOnDemand: false,
            reconnection: .never,
            offline: .off,
            buffering: BufferPolicy(.fail),
            redirects: .init(follows: .never),
            proxy: ProxyOptions(host: "proxy", port: 7),
            failover: .init(hosts: ["other"]),
            webSocket: .init(offersCompression: true),
            label: "label"
        )
        var single = MQTTConfiguration()
        single.label = "label"
        single.webSocket.offersCompression = true
        single.failover.hosts = ["other"]
        single.proxy = ProxyOptions(host: "proxy", port: 7)
        single.redirects.follows = .never
        single.buffering = BufferPolicy(.fail)
        single.offline = .off
        single.reconnection = .never
        single.connectsOnDemand = false
        single.requestsProblemInformation = false
        single.replies.topicPrefix = "six"
        single.aliases.accepted = 5
        single.limits.packetSize = 4
        single.timeouts.drain = .seconds(3)
        single.keepAlive.interval = .seconds(2)
        single.session.store = store
        single.session.expiry = .seconds(1)
        single.session.cleanStart = false
        single.will = Will(topic: "gone")
        single.credentials = CredentialSource { _ in Credentials() }
        single.password = "secret"
        single.userName = "user"
        single.clientIdentifier = "a"
        single.version = .v3_1_1
        #expect(Self.values(complete) == Self.values(single))
        #expect(Self.values(complete) != Self.values(MQTTConfiguration()))
    }

    @Test("A group keeps its rare options, and gives them up")
    func rareOptions() {
        var configuration = MQTTConfiguration()
        configuration.session.lateDelivery = .off
        configuration.keepAlive.adaptive = AdaptiveKeepAlive(minimum: .seconds(9))
        configuration.session.cleanStart = false
        configuration.keepAlive.interval = .seconds(8)
        #expect(configuration.session.lateDelivery == .off)
        #expect(configuration.keepAlive.adaptive?.minimum == .seconds(9))
        configuration.session = .init()
        configuration.keepAlive = .init()
        #expect(configuration.session.lateDelivery == LateDeliveryPolicy())
        #expect(configuration.session.cleanStart)
        #expect(configuration.keepAlive.adaptive == nil)
        #expect(configuration.keepAlive.interval == .seconds(60))
    }
}
