#if os(Linux)
    import Waybill
    import WireCore

    /// Counts the messages of QoS 2 that a broker publishes again after it has released them.
    ///
    /// Mosquitto 2.0.11 does so when a connection breaks while it repeats its PUBRELs. It treats those messages whose
    /// PUBREL it had not repeated yet as never received. A client cannot tell them from new messages, so they arrive
    /// twice. Mosquitto uses a new identifier for each message until all 65,535 are used up. That makes the
    /// repetition visible.
    final class BrokerRelapses: WireLogger {
        private struct State: Sendable {
            var released: Set<Substring> = []
            var count = 0
        }

        private let state = Locked(State())

        var count: Int { state.withLock { $0.count } }

        func log(_ record: WireRecord) {
            guard record.kind == .frame, record.direction == .inbound,
                let id = record.text.split(separator: " ").first(where: { $0.hasPrefix("id=") })
            else { return }
            state.withLock { state in
                if record.text.hasPrefix("PUBREL ") {
                    state.released.insert(id)
                } else if record.text.hasPrefix("PUBLISH "), state.released.remove(id) != nil {
                    state.count += 1
                }
            }
        }
    }
#endif
