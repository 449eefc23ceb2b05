package import WaybillTesting

extension LoopbackBroker {
    /// A broker that is listening.
    package static func started(
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> LoopbackBroker {
        var configuration = Configuration()
        change(&configuration)
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        return broker
    }
}
