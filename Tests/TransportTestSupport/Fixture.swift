package import Waybill
package import WaybillTesting

/// A broker for one test. The tests of each transport add what makes transports to it.
package struct Fixture: Sendable {
    package let broker: LoopbackBroker
    package let service: LoopbackBroker.Service
    /// The lines of the broker's log.
    package let lines = LineLog()

    package init(
        service: LoopbackBroker.Service,
        _ change: (inout LoopbackBroker.Configuration) -> Void
    ) throws {
        self.service = service
        broker = try .started { [lines] in
            $0.log = { lines.append($0) }
            change(&$0)
        }
    }

    /// Shuts the transports down in this order, then stops the broker.
    package func end(_ transports: any Transport...) async {
        for transport in transports { await transport.shutdown() }
        await broker.stop()
    }
}
