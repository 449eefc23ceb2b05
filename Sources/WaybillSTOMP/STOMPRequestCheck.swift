import STOMPWire
package import Waybill
import WaybillSession
package import WireCore

/// The checks of a STOMP transport before any input or output, for the mock transport.
///
/// It uses the transport's mapping, so that both refuse the same requests with the same errors.
package struct STOMPRequestCheck: Sendable {
    private let configuration: STOMPConfiguration

    /// - Parameter configuration: The configuration of the transport.
    package init(_ configuration: STOMPConfiguration) {
        self.configuration = configuration
    }

    /// Checks a request after the interceptors.
    ///
    /// - Throws: `unsupported`, `invalidEntry`.
    package func check(_ request: Request) throws(WaybillError) {
        try STOMPMapping.checkBody(request)
        switch request.command {
        case .connect: _ = try STOMPMapping.connect(request, configuration)
        case .send(let options):
            let send = try STOMPMapping.send(request, options, configuration)
            try STOMPMapping.check(send.headers, request)
        case .subscribe(let options):
            for part in request.partsByTopic { _ = try STOMPMapping.subscription(part, options) }
        case .unsubscribe(let options):
            for part in request.partsByTopic {
                _ = try STOMPMapping.unsubscription(part, options)
            }
        case .begin(let transaction):
            try STOMPMapping.check(STOMPMapping.beginning(transaction, request), request)
        case .ack(_, let options), .nack(_, let options):
            try STOMPMapping.check(options, request)
        case .commit, .abort: break
        case .disconnect(let options): try STOMPMapping.check(options, request)
        }
    }

    /// Checks the transaction of a request against the open ones.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - open: The names of the open transactions.
    /// - Throws: `invalidEntry`.
    package func check(_ request: Request, against open: Set<WireName>) throws(WaybillError) {
        switch request.command {
        case .begin(let name) where open.contains(WireName(name)):
            throw STOMPMapping.error(.transactionOpen, request)
        case .commit(let name), .abort(let name): try check(name, isOneOf: open, request)
        case .ack(_, let options), .nack(_, let options):
            if let name = options.transaction { try check(name, isOneOf: open, request) }
        default: break
        }
    }

    private func check(
        _ transaction: String,
        isOneOf open: Set<WireName>,
        _ request: Request
    ) throws(WaybillError) {
        guard !open.contains(WireName(transaction)) else { return }
        throw STOMPMapping.error(.transactionUnknown, request)
    }
}
