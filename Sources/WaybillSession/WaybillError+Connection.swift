package import Waybill

// What the life of a connection refuses, in the same words by a transport and by what stands for one in tests.
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

    /// A request that makes no connection by itself.
    package static var noConnection: WaybillError {
        WaybillError(.notConnected, "there is no connection")
    }

    /// An acknowledgement of a message that does not wait for one.
    package static var messageNotWaiting: WaybillError {
        WaybillError(.invalidEntry, "no message of that name waits to be acknowledged")
    }
}
