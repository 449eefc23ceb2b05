// Read in: what Documentation/OnAMac.md names; the rest is from memory, to compare with Network/*.h.
// Observed by: nobody.

public import Darwin
public import Dispatch
public import FoundationEssentials
public import Security

/// Stands in for the parts of Network that Waybill uses. No body here is ever run.

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public typealias DNSServiceErrorType = Int32

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public enum NWError: Error, Equatable, Sendable {
    case posix(POSIXErrorCode)
    case dns(DNSServiceErrorType)
    case tls(OSStatus)
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public struct IPv4Address: Hashable, Sendable {
    public static var loopback: IPv4Address { fatalError("stand-in") }

    public init?(_ string: String) {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public struct IPv6Address: Hashable, Sendable {
    public init?(_ string: String) {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public enum NWEndpoint: Hashable, Sendable {
    case hostPort(host: NWEndpoint.Host, port: NWEndpoint.Port)

    public enum Host: Hashable, Sendable {
        case name(String, NWInterface?)
        case ipv4(IPv4Address)
        case ipv6(IPv6Address)

        public init(_ string: String) {
            self = .name(string, nil)
        }
    }

    public struct Port: Hashable, Sendable, RawRepresentable {
        public static var any: NWEndpoint.Port { fatalError("stand-in") }

        public let rawValue: UInt16

        public init?(rawValue: UInt16) {
            self.rawValue = rawValue
        }
    }
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public struct NWInterface: Hashable, Sendable {
    public let name: String
    public let index: Int

    init() {
        name = ""
        index = 0
    }
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public struct NWPath: Equatable, Sendable {
    public enum Status: Sendable {
        case satisfied
        case unsatisfied
        case requiresConnection
    }

    // macOS 11, iOS 14.2, tvOS 14.2, watchOS 7.1.
    public enum UnsatisfiedReason: Sendable {
        case notAvailable
        case cellularDenied
        case wifiDenied
        case localNetworkDenied
    }

    public var unsatisfiedReason: NWPath.UnsatisfiedReason { .notAvailable }

    public let status: NWPath.Status
    public let availableInterfaces: [NWInterface]

    init() {
        status = .unsatisfied
        availableInterfaces = []
    }
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public final class NWPathMonitor: @unchecked Sendable {
    @preconcurrency public final var pathUpdateHandler: (@Sendable (NWPath) -> Void)?

    public init() {}

    public final func start(queue: DispatchQueue) {}

    public final func cancel() {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocolOptions {
    init() {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocolDefinition: @unchecked Sendable {
    init() {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocolMetadata: @unchecked Sendable {
    init() {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocol {
    init() {}
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocolTCP: NWProtocol {
    public class Options: NWProtocolOptions {
        public var noDelay: Bool = false
        public var enableKeepalive: Bool = false
        public var keepaliveIdle: Int = 0
        public var keepaliveInterval: Int = 0
        public var keepaliveCount: Int = 0

        public override init() {}
    }
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public class NWProtocolTLS: NWProtocol {
    public static let definition = NWProtocolDefinition()

    public class Metadata: NWProtocolMetadata, @unchecked Sendable {
        public var securityProtocolMetadata: sec_protocol_metadata_t { fatalError("stand-in") }
    }

    public class Options: NWProtocolOptions {
        public var securityProtocolOptions: sec_protocol_options_t { fatalError("stand-in") }

        public override init() {}
    }
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public final class NWParameters {
    public convenience init(
        tls: NWProtocolTLS.Options?,
        tcp: NWProtocolTCP.Options = NWProtocolTCP.Options()
    ) {
        self.init()
    }

    public init() {}

    public final var requiredLocalEndpoint: NWEndpoint?

    public final var allowLocalEndpointReuse: Bool = false
}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public final class NWConnection: @unchecked Sendable {
    public enum State: Equatable, Sendable {
        case setup
        case waiting(NWError)
        case preparing
        case ready
        case failed(NWError)
        case cancelled
    }

    public class ContentContext: @unchecked Sendable {
        public static let defaultMessage = NWConnection.ContentContext()
        public static let finalMessage = NWConnection.ContentContext()

        init() {}
    }

    public enum SendCompletion {
        case contentProcessed(@Sendable (NWError?) -> Void)
        case idempotent
    }

    @preconcurrency public final var stateUpdateHandler: (@Sendable (NWConnection.State) -> Void)?

    @preconcurrency public final var viabilityUpdateHandler: (@Sendable (Bool) -> Void)?

    @preconcurrency public final var betterPathUpdateHandler: (@Sendable (Bool) -> Void)?

    public final var currentPath: NWPath? { nil }

    public init(to: NWEndpoint, using: NWParameters) {}

    public convenience init(
        host: NWEndpoint.Host,
        port: NWEndpoint.Port,
        using parameters: NWParameters
    ) {
        self.init(to: .hostPort(host: host, port: port), using: parameters)
    }

    public final func start(queue: DispatchQueue) {}

    public final func cancel() {}

    public final func forceCancel() {}

    public final func metadata(definition: NWProtocolDefinition) -> NWProtocolMetadata? { nil }

    @preconcurrency public final func receive(
        minimumIncompleteLength: Int,
        maximumLength: Int,
        completion:
            @escaping @Sendable (Data?, NWConnection.ContentContext?, Bool, NWError?) -> Void
    ) {}

    public final func send(
        content: Data?,
        contentContext: NWConnection.ContentContext = .defaultMessage,
        isComplete: Bool = true,
        completion: NWConnection.SendCompletion
    ) {}
}

@available(*, unavailable)
extension NWConnection.SendCompletion: Sendable {}

@available(macOS 10.14, iOS 12.0, tvOS 12.0, watchOS 5.0, visionOS 1.0, *)
public final class NWListener: @unchecked Sendable {
    public enum State: Equatable, Sendable {
        case setup
        case waiting(NWError)
        case ready
        case failed(NWError)
        case cancelled
    }

    @preconcurrency public final var stateUpdateHandler: (@Sendable (NWListener.State) -> Void)?

    @preconcurrency public final var newConnectionHandler: (@Sendable (NWConnection) -> Void)?

    public final var port: NWEndpoint.Port? { nil }

    public init(using: NWParameters, on: NWEndpoint.Port = .any) throws {}

    public final func start(queue: DispatchQueue) {}

    public final func cancel() {}
}
