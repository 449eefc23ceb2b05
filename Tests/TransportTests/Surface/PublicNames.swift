import Dispatch
import Foundation
import Observation
import Waybill
import WaybillMQTT
import WaybillRecording
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WaybillWebSocket

#if canImport(Combine)
    import Combine
#endif
#if canImport(Network)
    import Network
#endif
#if canImport(SwiftUI)
    import SwiftUI
#endif

/// Uses each public name, unqualified, in a file with the imports of a typical app. A name that is also in one of
/// those modules does not compile here.
///
/// `Tests/AppleStubs/check` compiles the file again, against modules with the names of Combine, Network and SwiftUI.
enum PublicNames {
    private struct Named: EntryType {
        var topic: String? { nil }
        var command: EntryCommand { .connect }
    }

    static let all: [Any.Type] = [
        AckMode.self,
        AckOption.self,
        AnyEntry.self,
        (any BodyDecoder).self,
        (any BodyEncoder).self,
        BufferPolicy.self,
        BulkResults.self,
        ClosureWireLogger.self,
        (any CommandOption).self,
        ConnectOption.self,
        ConnectionHint.self,
        (any ConnectionHintSource).self,
        ConnectionHints.self,
        ConnectionState.self,
        ConnectionStateSource.self,
        ConnectionStates.self,
        CredentialSource.self,
        Credentials.self,
        DisconnectOption.self,
        EntryBody.self,
        EntryCommand.self,
        EntryTopic.self,
        (any EntryType).self,
        EnqueuedRequest.self,
        (any PeerRefusal).self,
        PropertyListBodyDecoder.self,
        PropertyListBodyEncoder.self,
        TypedEntry<Named, Message>.self,
        (any EventInterceptor).self,
        EventSource.self,
        EventStreamResponse.self,
        FailoverFailure.self,
        FailoverOptions.self,
        HTTPRefusal.self,
        Headers.self,
        InMemorySessionStore.self,
        (any Interceptor).self,
        InterceptorContext.self,
        JSONBodyDecoder.self,
        JSONBodyEncoder.self,
        LateDeliveryPolicy.self,
        LoopbackAuthentication.self,
        LoopbackBroker.self,
        LoopbackFaults.self,
        MQTTAuthProperties.self,
        MQTTAuthenticationContext.self,
        (any MQTTAuthenticationExchange).self,
        (any MQTTAuthenticator).self,
        MQTTConfiguration.self,
        MQTTConnack.self,
        MQTTPayloadFormat.self,
        MQTTTransport.self,
        ManualClock.self,
        Message.self,
        MessageFeed.self,
        MessageRouter<Int>.self,
        Messages<Message>.self,
        MockTransport.self,
        NegotiatedTLS.self,
        OfflinePolicy.self,
        OptionKey<Int>.self,
        OptionName.self,
        Payload.self,
        Provider<Named>.self,
        ProviderConfiguration.self,
        ProxyOptions.self,
        QoS.self,
        Receipt.self,
        (any ReceiptInterceptor).self,
        ReconnectionPolicy.self,
        Recorder.self,
        Recording.self,
        RecordingBuffer.self,
        RecordingError.self,
        RecordingReader.self,
        Request.self,
        RequestHandle.self,
        RequestAttempts.self,
        RequestChain.self,
        RetainHandling.self,
        RetryBudget.self,
        RetryDecision.self,
        RetryDelay.self,
        RetryPolicy.self,
        SCRAMAuthenticator.self,
        SSEConfiguration.self,
        SSETransport.self,
        STOMPConfiguration.self,
        STOMPReceipt.self,
        STOMPServerError.self,
        STOMPTransport.self,
        ScriptedByteStream.self,
        SendOption.self,
        (any SessionStore).self,
        SimulatedBroker.self,
        SimulatedFaults.self,
        SimulatedWorld.self,
        Simulation.self,
        SimulationFailure.self,
        StandardErrorWireLogger.self,
        (any StorableOptionValue).self,
        StoredMessage.self,
        StoredOption.self,
        SubscribeOption.self,
        SubscriptionIdentifier.self,
        UnsubscribeOption.self,
        AdaptiveKeepAlive.self, LearnedKeepAlive.self, MQTTReason.self, MQTTRedirectPolicy.self,
        SocketFailure.self, TLSFailure.self,
        WebSocketClosure.self,
        WireLogBodies.self,
        TLSOptions.self,
        TokenFailure.self,
        TokenInterceptor.self,
        TokenPlacement.self,
        (any TokenSource).self,
        SubscriptionUpdate<Int>.self,
        TopicStyle.self,
        (any Transport).self,
        TransportEvent.self,
        TransportEventSource.self,
        TransportEvents.self,
        TransportStatistics.self,
        WaybillError.self,
        WebSocketClient.self,
        WebSocketOptions.self,
        UnsupportedPolicy.self,
        Will.self,
        (any WireLogger).self,
        WireRecord.self,
    ]

    /// A type that cannot be copied is no value of `Any.Type`.
    static func finish(_ options: consuming OptionReader) throws { try options.finish(for: "") }
}
