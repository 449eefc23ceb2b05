package import Waybill

// The refusals of a connection's life cycle, shared by the transports and by the mock transport.
extension WaybillError {
    /// An explicit `connect` while there is a connection.
    package static var alreadyConnected: WaybillError {
        WaybillError(
            .rejected,
            "there is a connection already, or one is being made: connect only once"
        )
    }

    /// A request after an explicit `disconnect`.
    package static var disconnectedByApp: WaybillError {
        WaybillError(.notConnected, "the app has disconnected, and has not connected again")
    }

    /// A request that needs a connection and does not make one.
    package static var noConnection: WaybillError {
        WaybillError(.notConnected, "there is no connection")
    }

    /// An acknowledgement of a message whose subscription has ended.
    package static var subscriptionOver: WaybillError {
        WaybillError(
            .invalidEntry,
            "the subscription of this message has ended, so the server delivers it again; drain() ends one later"
        )
    }

    /// An acknowledgement of a message that is not waiting for one.
    package static var messageNotWaiting: WaybillError {
        WaybillError(.invalidEntry, "no message of that name waits to be acknowledged")
    }
}
