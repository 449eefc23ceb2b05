#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    #if canImport(FoundationEssentials)
        package import FoundationEssentials
    #else
        package import Foundation
    #endif

    /// A connection of Network.framework, which decides nothing.
    package final class FrameworkConnection: SystemConnection {
        private let connection: NWConnection
        private let peer: NetworkPeer
        private let trust: ServerTrust?
        private let queue = DispatchQueue(label: "waybill.connection")
        private let receiver = Locked<(@Sendable (NetworkReport) -> Void)?>(nil)

        /// Takes over a connection that was not started.
        init(_ connection: NWConnection, to peer: NetworkPeer, trust: ServerTrust? = nil) {
            self.connection = connection
            self.peer = peer
            self.trust = trust
        }

        package var tls: TLSAgreement? { TLSAgreement(of: connection) }

        package func start() {
            // Weak references: the receiver of reports decides how long this object lives.
            connection.stateUpdateHandler = { [weak self] in self?.stateDidChange($0) }
            connection.viabilityUpdateHandler = { [weak self] in self?.tell(.viable($0)) }
            connection.betterPathUpdateHandler = { [weak self] in self?.tell(.betterPath($0)) }
            connection.start(queue: queue)
        }

        package func report(to receiver: (@Sendable (NetworkReport) -> Void)?) {
            self.receiver.withLock { $0 = receiver }
        }

        package func perform(_ job: @escaping @Sendable () -> Void) {
            queue.async(execute: job)
        }

        package func perform(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
            let delay = DispatchTimeInterval.nanoseconds(Int(clamping: delay.wireNanoseconds))
            queue.asyncAfter(deadline: .now() + delay, execute: job)
        }

        package func receive(
            atMost limit: Int,
            _ completion: @escaping @Sendable (Data?, _ isComplete: Bool, LinkError?) -> Void
        ) {
            connection.receive(minimumIncompleteLength: 1, maximumLength: limit) {
                [self] content, _, isComplete, error in
                completion(content, isComplete, error.map(reason))
            }
        }

        package func send(
            _ bytes: UnsafeRawBufferPointer,
            _ completion: @escaping @Sendable (LinkError?) -> Void
        ) {
            connection.send(
                content: Data(bytes),
                contentContext: .defaultMessage,
                isComplete: true,
                completion: .contentProcessed { [self] error in completion(error.map(reason)) }
            )
        }

        package func finish(_ completion: @escaping @Sendable (LinkError?) -> Void) {
            connection.send(
                content: nil,
                contentContext: .finalMessage,
                isComplete: true,
                completion: .contentProcessed { [self] error in completion(error.map(reason)) }
            )
        }

        package func cancel() { connection.cancel() }

        package func forceCancel() { connection.forceCancel() }

        // MARK: On the queue

        private func stateDidChange(_ new: NWConnection.State) {
            switch new {
            case .setup, .preparing: tell(.preparing)
            case .ready: tell(.ready)
            case .failed(let error): tell(.failed(reason(error)))
            case .cancelled: tell(.cancelled)
            case .waiting(let error):
                // The error is that of a missing network. A system that asks its user waits for the answer.
                let isDenied = connection.currentPath?.unsatisfiedReason == .localNetworkDenied
                tell(
                    .waiting(
                        isDenied ? .localNetworkDenied : reason(error),
                        isFinal: !isDenied && NetworkFault(error).isFinal
                    )
                )
            @unknown default: break
            }
        }

        private func tell(_ report: NetworkReport) {
            receiver.withLock { $0 }?(report)
        }

        private func reason(_ error: NWError) -> LinkError {
            if case .tls = error, let fault = trust?.fault { return .tls(fault) }
            return LinkError(NetworkFault(error), of: peer)
        }
    }

    extension NetworkFault {
        init(_ error: NWError) {
            switch error {
            case .posix(let code): self = .posix(code.rawValue)
            case .dns(let code): self = .dns(code)
            case .tls(let status): self = .tls(status)
            @unknown default: self = .unknown("\(error)")
            }
        }
    }
#endif
