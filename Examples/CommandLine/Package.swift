// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// The command `waybill`: see README.md.
let package = Package(
    name: "CommandLine",
    platforms: [.macOS(.v13)],
    products: [.executable(name: "waybill", targets: ["WaybillCommand"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.6.0"),
        .package(name: "Waybill", path: "../.."),
    ],
    targets: [
        // Text and figures, without connections.
        .target(name: "CommandText", path: "Text", swiftSettings: settings),
        .executableTarget(
            name: "WaybillCommand",
            dependencies: [
                "CommandText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Waybill", package: "Waybill"),
                .product(name: "WaybillMQTT", package: "Waybill"),
                .product(name: "WaybillSTOMP", package: "Waybill"),
                .product(name: "WaybillSSE", package: "Waybill"),
            ],
            path: "Command",
            swiftSettings: settings
        ),
        .testTarget(
            name: "CommandTextTests",
            dependencies: ["CommandText"],
            path: "TextTests",
            swiftSettings: settings
        ),
    ]
)
