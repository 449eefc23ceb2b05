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
        #expect(configuration.session.cleanStart && configuration.session.expiry == nil)
        #expect(
            configuration.keepAlive.interval == .seconds(60)
                && configuration.timeouts.silence == nil
        )
        #expect(configuration.timeouts.connect == .seconds(10))
        #expect(configuration.timeouts.confirmation == .seconds(30))
        #expect(configuration.timeouts.reply == .seconds(30))
        #expect(configuration.timeouts.close == .seconds(5))
        #expect(configuration.timeouts.drain == .seconds(5))
        #expect(configuration.limits.inFlight == 20 && configuration.limits.receiveMaximum == 1_024)
        #expect(configuration.limits.filtersPerPacket == nil)
        #expect(configuration.aliases.isUsed && configuration.aliases.accepted == 16)
        #expect(configuration.limits.packetSize == 1 << 20)
        #expect(configuration.limits.announcesPacketSize)
        #expect(configuration.limits.memory == 64 << 20)
        #expect(configuration.replies.topicPrefix == "waybill/reply")
        #expect(!configuration.replies.requestsResponseInformation)
        #expect(configuration.requestsProblemInformation == nil)
        #expect(configuration.connectsOnDemand)
        check(configuration.buffering, .dropOldest)
        #expect(configuration.session.lateDelivery.timeToLive == .seconds(60))
        #expect(configuration.session.lateDelivery.messageLimit == 1_024)
        #expect(configuration.session.lateDelivery.byteLimit == nil)
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
        #expect(configuration.heartBeat.outgoing == .seconds(10))
        #expect(configuration.heartBeat.incoming == .seconds(10))
        #expect(configuration.timeouts.silence == nil)
        #expect(configuration.limits.inFlight == 200)
        #expect(configuration.timeouts.connect == .seconds(10))
        #expect(configuration.timeouts.confirmation == .seconds(15))
        #expect(configuration.timeouts.reply == .seconds(30))
        #expect(configuration.timeouts.close == .seconds(5))
        #expect(configuration.limits.bodySize == 1 << 20)
        #expect(configuration.limits.headerLineSize == 65_536)
        #expect(configuration.limits.headerCount == 100)
        #expect(configuration.limits.memory == 64 << 20)
        #expect(configuration.replyDestination == nil && configuration.connectsOnDemand)
        check(configuration.buffering, .fail)
    }

    @Test("Event streams")
    func eventStreams() {
        let configuration = SSEConfiguration()
        #expect(configuration.timeouts.connect == .seconds(10))
        #expect(configuration.timeouts.confirmation == .seconds(30))
        #expect(configuration.timeouts.silence == nil)
        #expect(configuration.limits.connectionsPerHost == 6)
        #expect(configuration.limits.redirects == 5)
        #expect(configuration.acceptsCompression)
        #expect(configuration.limits.lineSize == nil)
        #expect(configuration.limits.eventSize == 1 << 20)
        #expect(configuration.limits.replySize == 1 << 20)
        #expect(configuration.limits.memory == 64 << 20)
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
        for queue in [MQTTConfiguration().offline, STOMPConfiguration().offline] {
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
