// swift-tools-version: 6.2
import PackageDescription

/// A module that stands in for one of Apple's.
///
/// Library evolution makes its enums as open as Apple's. A `switch` over one of them needs its `@unknown default`
/// here, too.
func standIn(
    _ name: String,
    _ dependencies: [Target.Dependency] = [],
    path: String? = nil
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: path ?? name,
        swiftSettings: [
            .swiftLanguageMode(.v6),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            // Dispatch and FoundationEssentials are the real modules, whose enums are not open.
            .unsafeFlags(["-enable-library-evolution", "-suppress-warnings"]),
        ]
    )
}

let package = Package(
    name: "AppleStubs",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(
            name: "AppleStubs",
            targets: [
                "Combine", "CommonCrypto", "CoreFoundation", "CryptoKit", "Darwin", "Foundation",
                "Network", "Security", "os",
            ]
        )
    ],
    targets: [
        standIn("Combine"),
        standIn("CommonCrypto", path: "CCrypto"),
        standIn("CoreFoundation"),
        standIn("CryptoKit"),
        standIn("Darwin"),
        standIn("Foundation", ["CoreFoundation", "Darwin"]),
        standIn("Network", ["Darwin", "Security"]),
        standIn("Security", ["CoreFoundation", "Darwin"]),
        standIn("os"),
    ]
)
