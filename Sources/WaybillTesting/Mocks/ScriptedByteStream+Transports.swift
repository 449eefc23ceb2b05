import Waybill
import WaybillLink
public import WaybillMQTT
public import WaybillMock
public import WaybillSTOMP
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Gives out scripted streams, one for each connection, and refuses when there is none left.
private final class ScriptedDialer: Dialer {
    private let scripts: Locked<[ScriptedByteStream]>

    init(_ scripts: [ScriptedByteStream]) {
        self.scripts = Locked(scripts)
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let script = scripts.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let script else { throw .refused }
        return script.open()
    }
}

extension LinkEnvironment {
    /// A world of scripts, where time is a manual clock's and nothing is random.
    fileprivate init(_ scripts: [ScriptedByteStream], _ clock: ManualClock) {
        self.init(
            dialer: ScriptedDialer(scripts),
            clock: clock.linkTimers,
            random: { 0 }
        )
    }
}

/// A URL that leads nowhere.
private func scriptURL(_ text: String) throws(WaybillError) -> URL {
    guard let url = URL(string: text) else {
        throw WaybillError(.invalidEntry, "this is not a URL")
    }
    return url
}

extension MQTTTransport {
    /// A transport whose connections follow scripts, and whose time is a manual clock's.
    ///
    /// - Parameters:
    ///   - scripts: One for each connection; further ones are refused.
    ///   - clock: What keep alive and timeouts are measured by.
    ///   - configuration: How the transport behaves.
    /// - Throws: Nothing that this use can bring about.
    public convenience init(
        scripts: ScriptedByteStream...,
        clock: ManualClock = ManualClock(),
        configuration: MQTTConfiguration = MQTTConfiguration()
    ) throws(WaybillError) {
        try self.init(scripts: scripts, clock: clock, configuration: configuration)
    }

    package convenience init(
        scripts: [ScriptedByteStream],
        clock: ManualClock,
        configuration: MQTTConfiguration
    ) throws(WaybillError) {
        try self.init(
            url: scriptURL("mqtt://script"),
            configuration: configuration,
            environment: LinkEnvironment(scripts, clock)
        )
    }
}

extension STOMPTransport {
    /// A transport whose connections follow scripts, and whose time is a manual clock's.
    ///
    /// - Parameters:
    ///   - scripts: One for each connection; further ones are refused.
    ///   - clock: What heart-beats and timeouts are measured by.
    ///   - configuration: How the transport behaves; the host is `script` unless it names another.
    /// - Throws: Nothing that this use can bring about.
    public convenience init(
        scripts: ScriptedByteStream...,
        clock: ManualClock = ManualClock(),
        configuration: STOMPConfiguration = STOMPConfiguration()
    ) throws(WaybillError) {
        try self.init(scripts: scripts, clock: clock, configuration: configuration)
    }

    package convenience init(
        scripts: [ScriptedByteStream],
        clock: ManualClock,
        configuration: STOMPConfiguration
    ) throws(WaybillError) {
        try self.init(
            url: scriptURL("stomp://script"),
            configuration: configuration,
            environment: LinkEnvironment(scripts, clock)
        )
    }
}
