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
        try STOMPMapping.checkIdentifiers(request, configuration)
        switch request.command.code {
        case .connect: _ = try STOMPMapping.connect(request, configuration, .stomp)
        case .send:
            let send = try STOMPMapping.send(request, configuration)
            try STOMPMapping.check(send.headers, request)
        case .subscribe:
            for part in request.partsByTopic { _ = try STOMPMapping.subscription(part) }
        case .unsubscribe:
            for part in request.partsByTopic { _ = try STOMPMapping.unsubscription(part) }
        case .ack, .nack: _ = try STOMPMapping.acknowledgement(request)
        case .disconnect: try STOMPMapping.checkDisconnect(request)
        case .other:
            let transaction = try STOMPMapping.transaction(request)
            guard request.command.kind == .begin else { return }
            try STOMPMapping.check(STOMPMapping.beginning(transaction, request), request)
        }
    }

    /// Checks the transaction of a request against the open ones.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - open: The names of the open transactions.
    /// - Throws: `invalidEntry`.
    package func check(_ request: Request, against open: Set<WireName>) throws(WaybillError) {
        guard let name = request.command[.transaction] else { return }
        let begins = request.command.kind == .begin
        guard open.contains(WireName(name)) == begins else { return }
        throw STOMPMapping.error(begins ? .transactionOpen : .transactionUnknown, request)
    }
}
