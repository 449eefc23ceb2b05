import Testing
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillWebSocket

/// The values that the documentation comments and the guide state for what an app does not set.
@Suite("Defaults") struct DefaultTests {
    @Test("MQTT")
    func mqtt() {
        let configuration = MQTTConfiguration()
        #expect(configuration.version == .v5)
        #expect(configuration.cleanStart && configuration.sessionExpiry == nil)
        #expect(configuration.keepAlive == .seconds(60) && configuration.readTimeout == nil)
        #expect(configuration.connectTimeout == .seconds(10))
        #expect(configuration.acknowledgementTimeout == .seconds(30))
        #expect(configuration.replyTimeout == .seconds(30))
        #expect(configuration.closeTimeout == .seconds(5))
        #expect(configuration.drainTimeout == .seconds(5))
        #expect(configuration.inflightWindow == 20 && configuration.receiveMaximum == 1_024)
        #expect(configuration.filtersPerPacket == nil)
        #expect(configuration.usesTopicAliases && configuration.topicAliasMaximum == 16)
        #expect(configuration.maximumPacketSize == 1 << 20)
        #expect(configuration.announcesMaximumPacketSize)
        #expect(configuration.memoryLimit == 64 << 20)
        #expect(configuration.replyTopicPrefix == "waybill/reply")
        #expect(!configuration.asksForResponseInformation)
        #expect(configuration.asksForProblemInformation == nil)
        #expect(configuration.connectsOnDemand)
        check(configuration.buffering, .dropOldest)
        #expect(configuration.lateDelivery.timeToLive == .seconds(60))
        #expect(configuration.lateDelivery.messageLimit == 1_024)
        #expect(configuration.lateDelivery.byteLimit == nil)
        #expect(configuration.redirects.follows == .overTLS)
        #expect(configuration.redirects.maximumHops == 5)
        let adaptive = AdaptiveKeepAlive()
        #expect(adaptive.minimum == .seconds(60) && adaptive.step == .seconds(15))
        #expect(SCRAMAuthenticator.defaultIterations == 4_096...1_000_000)
    }

    @Test("STOMP")
    func stomp() {
        let configuration = STOMPConfiguration()
        #expect(configuration.versions == STOMPConfiguration.Version.allCases)
        #expect(configuration.outgoingHeartBeat == .seconds(10))
        #expect(configuration.incomingHeartBeat == .seconds(10))
        #expect(configuration.readTimeout == nil)
        #expect(configuration.maximumInFlight == 200)
        #expect(configuration.connectTimeout == .seconds(10))
        #expect(configuration.receiptTimeout == .seconds(15))
        #expect(configuration.replyTimeout == .seconds(30))
        #expect(configuration.closeTimeout == .seconds(5))
        #expect(configuration.maximumBodySize == 1 << 20)
        #expect(configuration.maximumHeaderLineSize == 65_536)
        #expect(configuration.maximumHeaderCount == 100)
        #expect(configuration.memoryLimit == 64 << 20)
        #expect(configuration.replyDestination == nil && configuration.connectsOnDemand)
        check(configuration.buffering, .fail)
    }

    @Test("Event streams")
    func eventStreams() {
        let configuration = SSEConfiguration()
        #expect(configuration.connectTimeout == .seconds(10))
        #expect(configuration.responseTimeout == .seconds(30))
        #expect(configuration.idleTimeout == nil)
        #expect(configuration.maximumConnectionsPerHost == 6)
        #expect(configuration.maximumRedirects == 5)
        #expect(configuration.acceptsCompression)
        #expect(configuration.maximumLineSize == nil)
        #expect(configuration.maximumEventSize == 1 << 20)
        #expect(configuration.maximumReplySize == 1 << 20)
        #expect(configuration.memoryLimit == 64 << 20)
        check(configuration.buffering, .holdBack)
    }

    @Test("WebSocket, alone and under MQTT and STOMP")
    func webSocket() {
        let configuration = WebSocketClient.Configuration()
        #expect(configuration.subprotocols == [] && !configuration.requiresSubprotocol)
        #expect(configuration.compression != nil && configuration.compressionThreshold == 64)
        #expect(configuration.maximumMessageSize == 1 << 20)
        #expect(configuration.maximumWaitingSize == 1 << 20)
        #expect(configuration.connectTimeout == .seconds(10))
        #expect(configuration.closeTimeout == .seconds(5))
        #expect(configuration.pingInterval == .seconds(20))
        #expect(configuration.pingTimeout == .seconds(20))
        let options = WebSocketOptions()
        #expect(!options.offersCompression)
        #expect(options.pingInterval == .seconds(20) && options.pingTimeout == .seconds(20))
    }

    @Test("What several transports share")
    func shared() {
        for reconnection in [
            MQTTConfiguration().reconnection, STOMPConfiguration().reconnection,
            SSEConfiguration().reconnection,
        ] {
            #expect(reconnection.isEnabled)
            #expect(reconnection.initialDelay == .seconds(1))
            #expect(reconnection.maximumDelay == .seconds(60))
            #expect(reconnection.busyDelay == .seconds(5))
            #expect(reconnection.maximumServerDelay == .seconds(600))
            #expect(reconnection.healthyTime == .seconds(60))
            #expect(reconnection.maximumAttempts == nil && reconnection.maximumTime == nil)
        }
        for queue in [MQTTConfiguration().offlineQueue, STOMPConfiguration().offlineQueue] {
            #expect(queue.isEnabled && queue.messageLimit == 1_000 && queue.byteLimit == 4 << 20)
            #expect(queue.timeToLive == nil && queue.overflow == .fail)
            #expect(!queue.includesUnacknowledged && queue.waitsForConnection == nil)
        }
        let tls = TLSOptions()
        #expect(tls.minimumVersion == .v1_2 && !tls.dangerouslyAcceptsAnyCertificate)
        #expect(tls.authorities.isEmpty && tls.pinnedPublicKeys.isEmpty)
        let failover = FailoverOptions()
        #expect(failover.hosts == [] && failover.order == .inOrder)
    }

    @Test("Providers and retries")
    func providers() {
        let provider = ProviderConfiguration()
        #expect(provider.maximumEnqueuedCount == 65_536)
        #expect(provider.maximumEnqueuedByteCount == 16 << 20)
        let retries = RetryPolicy()
        #expect(retries.maximumAttempts == 3)
        #expect(retries.longestServerDelay == .seconds(60) && retries.busyDelay == .seconds(5))
        #expect(retries.codes == WaybillError.Code.retryable && retries.budget == nil)
        #expect(retries.commands == nil)
    }

    private func check(
        _ policy: BufferPolicy,
        _ overflow: BufferPolicy.Overflow,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(policy.overflow == overflow, sourceLocation: location)
        #expect(policy.messageLimit == 16_384, sourceLocation: location)
        #expect(policy.byteLimit == 16 << 20, sourceLocation: location)
    }
}
