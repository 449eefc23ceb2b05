import MQTTWire
import Testing
import WireCore

// Types have the same size in a release build, which has no @testable.
#if DEBUG
    @testable import WaybillLink
    @testable import WaybillMQTT
    @testable import WaybillSession

    /// The memory that each connection takes even while it is idle: a client may have ten thousand of them.
    ///
    /// A rarely set value belongs out of line, as in ``Shared``. Measure P10 before a limit here is raised.
    @Suite("MQTT: size of an idle connection") struct ConnectionSizeTests {
        typealias Lifecycle = ConnectionLifecycle<MQTTConnection>

        @Test(
            "What each connection stores inline stays small",
            arguments: [
                (
                    "driver, with the core", MemoryLayout<DriverState<MQTTClientConnection>>.size,
                    1_208
                ),
                ("connection", MemoryLayout<MQTTConnection.State>.size, 96),
                ("life cycle", MemoryLayout<Lifecycle.State>.size, 544),
                ("settings", MemoryLayout<ConnectionSettings>.size, 64),
                ("redirects", MemoryLayout<ServerRedirects>.size, 16),
                ("unsteady hosts", MemoryLayout<UnsteadyHosts>.size, 8),
                ("dialect", MemoryLayout<MQTTDialect>.size, 96),
                ("configuration", MemoryLayout<MQTTConfiguration>.size, 312),
            ]
        )
        func size(part: String, size: Int, limit: Int) {
            #expect(size <= limit, "\(part)")
        }
    }
#endif
