package import STOMPWire
import Waybill

/// The contents of a SUBSCRIBE, beside its id.
package struct STOMPSubscribe: Sendable {
    let destination: String
    let ackMode: STOMPAckMode
    /// Whether the mode follows from the quality of service, so that STOMP 1.0 may use another mode.
    var isModeImplied = false
    /// The id that the entry has chosen; nil for one that the transport makes.
    var identifier: String?
    /// The further headers.
    var headers: STOMPHeaders = [:]

    package init(destination: String, ackMode: STOMPAckMode = .auto) {
        self.destination = destination
        self.ackMode = ackMode
    }

    /// The headers that depend on the entry.
    var allHeaders: STOMPHeaders {
        var headers = headers
        headers.append(STOMPHeaderName.destination, destination)
        if let identifier { headers.append(STOMPHeaderName.id, identifier) }
        return headers
    }

    /// How messages are acknowledged in a version.
    func ackMode(in version: STOMPVersion) -> STOMPAckMode {
        // 1.0 has no acknowledgement of single messages. In order, the cumulative acknowledgement has the same effect.
        let isOld = version == .v1_0 && isModeImplied
        return isOld && ackMode == .clientIndividual ? .client : ackMode
    }
}

extension STOMPAckMode {
    init(_ mode: AckMode) {
        switch mode {
        case .auto: self = .auto
        case .client: self = .client
        case .clientIndividual: self = .clientIndividual
        }
    }
}
