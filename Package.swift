// swift-tools-version: 6.2
import PackageDescription

/// Whether warnings are errors.
///
/// A variable, and no option of the commands: so all commands of one run build alike, and none builds again what another
/// has built.
let isStrict = Context.environment["WAYBILL_STRICT"] == "1"

/// The settings that every Swift target shares, so that no target can drift from the others.
let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (isStrict ? [.treatAllWarnings(as: .error)] : [])

/// All platforms of Apple.
///
/// A condition for iOS does not include Mac Catalyst.
let apple: [Platform] = [.macOS, .macCatalyst, .iOS, .tvOS, .watchOS, .visionOS]

/// The settings that every C target shares.
let cSettings: [CSetting] =
    [.enableWarning("all"), .enableWarning("extra")]
    + (isStrict ? [.treatAllWarnings(as: .error)] : [])

/// A library target of the package, in `Sources`.
func source(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// A test target, in `Tests`.
///
/// Its own code is not optimized in the checks: a release build shows what the optimizer does to the sources, and the
/// tests would take most of its time.
func tests(
    _ name: String,
    _ dependencies: [Target.Dependency],
    path: String? = nil,
    exclude: [String] = []
) -> Target {
    .testTarget(
        name: name,
        dependencies: dependencies,
        path: path,
        exclude: exclude,
        swiftSettings: settings
            + (isStrict
                ? [
                    .unsafeFlags(["-Onone"], .when(configuration: .release)),
                    // No target imports a test target: its module is emitted once, with the code.
                    .unsafeFlags(["-no-emit-module-separately-wmo"], .when(platforms: [.linux])),
                ] : [])
    )
}

let package = Package(
    name: "Waybill",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "Waybill", targets: ["Waybill"]),
        .library(name: "WaybillMQTT", targets: ["WaybillMQTT"]),
        .library(name: "WaybillSTOMP", targets: ["WaybillSTOMP"]),
        .library(name: "WaybillSSE", targets: ["WaybillSSE"]),
        .library(name: "WaybillWebSocket", targets: ["WaybillWebSocket"]),
        .library(name: "WaybillSQLite", targets: ["WaybillSQLite"]),
        .library(name: "WaybillRecording", targets: ["WaybillRecording"]),
        .library(name: "WaybillTesting", targets: ["WaybillTesting"]),
    ],
    targets: [
        // The innermost ring, and the wire cores on it: values, no I/O.
        source("WireCore"),
        source("MQTTWire", ["WireCore"]),
        source("HTTPWire", ["WireCore", "CWaybillZlib"]),
        source("WebSocketWire", ["HTTPWire", "WireCore", "CWaybillZlib"]),
        .target(
            name: "CWaybillZlib",
            cSettings: cSettings,
            linkerSettings: [
                .linkedLibrary("dl", .when(platforms: [.linux])),
                .linkedLibrary("z", .when(platforms: apple)),
            ]
        ),
        source("STOMPWire", ["WireCore"]),
        source("EventStreamWire", ["HTTPWire", "WireCore"]),
        source("SCRAMWire", ["WireCore"]),

        // Sockets, clocks and randomness.
        .target(name: "CWaybillLinux", cSettings: cSettings),
        .target(
            name: "CWaybillTLS",
            cSettings: cSettings,
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]
        ),
        source(
            "WaybillLink",
            [
                "WireCore", "HTTPWire", "WebSocketWire", "SCRAMWire",
                .target(name: "CWaybillLinux", condition: .when(platforms: [.linux])),
                .target(name: "CWaybillTLS", condition: .when(platforms: [.linux])),
            ]
        ),

        // What users write, what the transports share, the transports, and what users test with.
        source("Waybill", ["WireCore"]),
        source(
            "WaybillSession",
            ["Waybill", "WaybillLink", "WebSocketWire", "HTTPWire", "WireCore"]
        ),
        source(
            "WaybillMQTT",
            ["Waybill", "WaybillSession", "WaybillLink", "MQTTWire", "SCRAMWire", "WireCore"]
        ),
        source(
            "WaybillSTOMP",
            ["Waybill", "WaybillSession", "WaybillLink", "STOMPWire", "WireCore"]
        ),
        source(
            "WaybillSSE",
            [
                "Waybill", "WaybillSession", "WaybillLink", "EventStreamWire", "HTTPWire",
                "WireCore",
            ]
        ),
        source(
            "WaybillWebSocket",
            [
                "Waybill", "WaybillSession", "WaybillLink", "WebSocketWire", "HTTPWire",
                "WireCore",
            ]
        ),
        // A store on disk, for those transports that keep messages.
        source("WaybillSQLite", ["Waybill", "WireCore", "CWaybillSQLite"]),
        .target(
            name: "CWaybillSQLite",
            // In this target, because it calls `stat`. In one with Swift, a resource brings Foundation in.
            resources: [.copy("PrivacyInfo.xcprivacy")],
            cSettings: cSettings,
            linkerSettings: [
                .linkedLibrary("dl", .when(platforms: [.linux])),
                .linkedLibrary("sqlite3", .when(platforms: apple)),
            ]
        ),
        // Frames of every transport as lines of JSON, in a file or in memory.
        source("WaybillRecording", ["Waybill", "MQTTWire", "WireCore"]),
        source("WaybillMock", ["Waybill", "WaybillSession", "WaybillLink", "WireCore"]),
        source(
            "WaybillTesting",
            [
                "Waybill", "WaybillMock", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE",
                "WaybillWebSocket",
                "WaybillSession", "WaybillLink", "WebSocketWire", "EventStreamWire", "HTTPWire",
                "MQTTWire", "STOMPWire", "SCRAMWire", "WireCore", "CWaybillSimulation",
            ]
        ),
        .target(
            name: "CWaybillSimulation",
            cSettings: cSettings,
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]
        ),

        // Examples, compiled and run by the test command.
        .target(
            name: "ChatService",
            dependencies: ["Waybill"],
            path: "Examples/ChatService",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "FirstPage",
            dependencies: ["WaybillMQTT"],
            path: "Examples/FirstPage",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "Quickstart",
            dependencies: [
                "ChatService", "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE",
                "WaybillTesting",
            ],
            path: "Examples/Quickstart",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "WebSocketEcho",
            dependencies: ["Waybill", "WaybillWebSocket"],
            path: "Examples/WebSocketEcho",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "WorkerPool",
            dependencies: ["Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillTesting"],
            path: "Examples/WorkerPool",
            swiftSettings: settings
        ),
        .target(
            name: "StomperPort",
            dependencies: ["Waybill"],
            path: "Examples/StomperPort",
            swiftSettings: settings
        ),
        .target(
            name: "EventSourcePort",
            dependencies: ["Waybill", "WaybillSSE"],
            path: "Examples/EventSourcePort",
            swiftSettings: settings
        ),
        tests(
            "EventSourcePortTests",
            ["EventSourcePort", "Waybill", "WaybillSSE", "WaybillTesting", "TransportTestSupport"],
            path: "Examples/EventSourcePortTests"
        ),
        tests(
            "StomperPortTests",
            ["StomperPort", "Waybill", "WaybillSTOMP", "WaybillTesting"],
            path: "Examples/StomperPortTests"
        ),
        tests(
            "ChatServiceTests",
            ["ChatService", "Waybill", "WaybillMQTT", "WaybillTesting"],
            path: "Examples/ChatServiceTests"
        ),

        // Tests.
        .target(
            name: "WireTestSupport",
            dependencies: ["WireCore"],
            path: "Tests/WireTestSupport",
            exclude: ["event-stream-cases.json"],
            swiftSettings: settings
        ),
        .target(
            name: "TransportTestSupport",
            dependencies: [
                "Waybill", "WaybillMQTT", "WaybillSSE", "WaybillSTOMP", "WaybillTesting",
                "WaybillLink", "WireCore", "WireTestSupport",
            ],
            path: "Tests/TransportTestSupport",
            swiftSettings: settings
        ),
        .target(
            name: "ChaosSupport",
            dependencies: ["WireCore", "WireTestSupport"],
            path: "Tests/ChaosSupport",
            swiftSettings: settings
        ),
        tests("ChaosSupportTests", ["ChaosSupport", "WireCore", "WireTestSupport"]),
        tests("WireCoreTests", ["WireCore", "WireTestSupport"]),
        tests("MQTTWireTests", ["MQTTWire", "WireCore", "WireTestSupport"]),
        tests("SCRAMWireTests", ["SCRAMWire", "WaybillLink", "WireCore"]),
        tests("HTTPWireTests", ["HTTPWire", "WireCore", "WireTestSupport"]),
        tests("WebSocketWireTests", ["WebSocketWire", "HTTPWire", "WireCore", "WireTestSupport"]),
        tests(
            "EventStreamWireTests",
            ["EventStreamWire", "HTTPWire", "WireCore", "WireTestSupport"]
        ),
        tests("STOMPWireTests", ["STOMPWire", "WireCore", "WireTestSupport"]),
        tests(
            "WaybillTests",
            [
                "Waybill", "WaybillMQTT", "WaybillSSE", "WaybillTesting", "TransportTestSupport",
                "WireCore", "WireTestSupport",
            ]
        ),
        tests(
            "WaybillLinkTests",
            [
                "WaybillLink", "WaybillTesting", "WebSocketWire", "HTTPWire", "WireCore",
                "WireTestSupport",
            ]
        ),
        tests(
            "WaybillSessionTests",
            [
                "Waybill", "WaybillSession", "WaybillLink", "WaybillTesting", "HTTPWire",
                "WebSocketWire", "WireCore", "TransportTestSupport", "WireTestSupport",
            ]
        ),
        .executableTarget(
            name: "WaybillStoreProcess",
            dependencies: [
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE", "WaybillSQLite",
            ],
            path: "Tests/StoreProcess",
            swiftSettings: settings
        ),
        tests(
            "WaybillSQLiteTests",
            [
                "WaybillStoreProcess",
                "Waybill", "WaybillMQTT", "WaybillSQLite", "WaybillSSE", "WaybillTesting",
                "CWaybillSQLite",
                "WireCore", "TransportTestSupport", "WireTestSupport",
            ]
        ),
        tests(
            "WaybillRecordingTests",
            [
                "Waybill", "WaybillMQTT", "WaybillRecording", "WaybillSSE", "WaybillSTOMP",
                "WaybillTesting", "WaybillWebSocket", "WireCore", "TransportTestSupport",
                "WireTestSupport",
            ]
        ),
        tests(
            "WaybillMQTTTests",
            [
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE", "WaybillLink",
                "WaybillSession", "WaybillTesting", "MQTTWire", "WireCore",
                "TransportTestSupport", "WireTestSupport",
            ]
        ),
        tests(
            "WaybillSTOMPTests",
            [
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillLink", "WaybillSession",
                "WaybillTesting", "STOMPWire", "HTTPWire", "WebSocketWire", "WireCore",
                "TransportTestSupport", "WireTestSupport",
            ]
        ),
        tests(
            "WaybillSSETests",
            [
                "Waybill", "WaybillSSE", "WaybillMQTT", "WaybillSTOMP", "WaybillLink",
                "WaybillTesting", "HTTPWire", "WireCore", "TransportTestSupport",
                "WireTestSupport",
            ]
        ),
        tests(
            "WaybillWebSocketTests",
            [
                "Waybill", "WaybillWebSocket", "WaybillLink", "WaybillTesting", "WebSocketWire",
                "HTTPWire", "WireCore", "WireTestSupport",
            ]
        ),
        tests(
            "WaybillTestingTests",
            [
                "Waybill", "WaybillLink", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE",
                "WaybillWebSocket", "WaybillSession", "WaybillMock", "WaybillTesting",
                "EventStreamWire",
                "HTTPWire", "MQTTWire", "STOMPWire", "WebSocketWire", "WireCore",
                "TransportTestSupport", "WireTestSupport",
            ]
        ),
        // What every transport promises.
        tests(
            "TransportTests",
            [
                "Waybill", "WaybillLink", "WaybillMQTT", "WaybillRecording", "WaybillSTOMP",
                "WaybillSSE", "WaybillWebSocket", "WaybillSession", "WaybillTesting",
                "EventStreamWire",
                "HTTPWire", "MQTTWire", "STOMPWire", "WebSocketWire", "WireCore",
                "TransportTestSupport", "WireTestSupport",
            ]
        ),
        tests("ArchitectureTests", []),
        tests(
            "ServerTests",
            [
                "WaybillSQLite", "WaybillStoreProcess", "WorkerPool",
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE", "WaybillWebSocket",
                "WaybillLink", "WaybillTesting", "ChaosSupport", "TransportTestSupport",
                "WireCore", "WireTestSupport",
            ]
        ),
        tests("FloodTests", ["WaybillFloods"]),
        .executableTarget(
            name: "WaybillFloods",
            dependencies: [
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE", "WaybillWebSocket",
                "WebSocketWire", "HTTPWire", "WireCore", "CWaybillZlib",
            ],
            path: "Tests/Floods",
            swiftSettings: settings
        ),
        tests("SimulationTests", ["WaybillSimulations", "WaybillTesting"]),
        .executableTarget(
            name: "WaybillSimulations",
            dependencies: [
                "Waybill", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE", "WaybillTesting",
                "WireCore",
            ],
            path: "Tests/Simulations",
            exclude: ["mutants", "mutants.txt"],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "WaybillBenchmarks",
            dependencies: [
                "Waybill", "WaybillMQTT", "WaybillRecording", "WaybillSSE", "WaybillSQLite",
                "WaybillWebSocket", "WaybillLink", "EventStreamWire", "MQTTWire", "STOMPWire",
                "WebSocketWire", "WireCore",
            ],
            path: "Tests/Benchmarks",
            exclude: ["References", "counts", "counts.limits", "curves.py", "programs.py", "run"],
            swiftSettings: settings
        ),
    ]
)

// Sanitizers and the release mode test only some targets, and build no other.
if let names = Context.environment["WAYBILL_TEST_TARGETS"]?.split(whereSeparator: \.isWhitespace) {
    let known = Set(package.targets.filter { $0.type == .test }.map { Substring($0.name) })
    precondition(known.isSuperset(of: names), "WAYBILL_TEST_TARGETS names no test target")
    package.targets.removeAll { $0.type == .test && !names.contains(Substring($0.name)) }
}
