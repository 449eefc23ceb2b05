// swift-tools-version: 6.2
import PackageDescription

// Runs the bridge to Combine on Linux, with OpenCombine in Combine's place: see `test`.
let package = Package(
    name: "CombineOnLinux",
    dependencies: [
        .package(url: "https://github.com/OpenCombine/OpenCombine.git", exact: "0.14.0"),
        .package(name: "Waybill", path: "../.."),
    ],
    targets: [
        // By its name, Waybill's own files compile against it: `#if canImport(Combine)`.
        .target(
            name: "Combine",
            dependencies: [.product(name: "OpenCombine", package: "OpenCombine")],
            path: "Combine"
        ),
        .testTarget(
            name: "PublisherTests",
            dependencies: [
                "Combine",
                .product(name: "Waybill", package: "Waybill"),
                .product(name: "WaybillTesting", package: "Waybill"),
            ],
            path: "PublisherTests"
        ),
    ]
)
