import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting

@Suite("MQTT transport: configuration") struct ConfigurationTests {
    @Test("What is rarely set is kept like the rest, and copies are apart")
    func rare() {
        var configuration = MQTTConfiguration(version: .v3_1_1)
        #expect(
            configuration.will == nil
                && configuration.tls.minimumVersion == TLSOptions().minimumVersion
        )
        configuration.will = Will(topic: "gone", body: "bye")
        configuration.failover.hosts = ["b.example"]
        configuration.reconnection.initialDelay = .seconds(7)
        var other = configuration
        other.will = nil
        other.session.lateDelivery = .off
        other.offline.timeToLive = .seconds(3)
        other.reconnection.initialDelay = .seconds(8)
        #expect(configuration.will?.topic == "gone" && other.will == nil)
        #expect(configuration.failover.hosts == ["b.example"])
        #expect(other.failover.hosts == ["b.example"])
        #expect(configuration.session.lateDelivery != .off && other.session.lateDelivery == .off)
        #expect(configuration.offline.timeToLive != .seconds(3))
        #expect(other.offline.timeToLive == .seconds(3))
        #expect(configuration.reconnection.initialDelay == .seconds(7))
        #expect(other.reconnection.initialDelay == .seconds(8))
        #expect(configuration.version == .v3_1_1 && other.version == .v3_1_1)
    }

    @Test("An environment that is changed leaves its copies as they were")
    func environment() {
        let original = LinkEnvironment.system
        var changed = original
        changed.random = { 4 }
        changed.randomWords = { Array(repeating: 4, count: $0) }
        var again = changed
        again.random = { 5 }
        #expect(changed.random() == 4 && again.random() == 5)
        #expect(again.randomWords(2) == [4, 4])
        #expect(original.randomWords(3).count == 3)
    }
}
