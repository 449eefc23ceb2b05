#if os(Linux)
    import Waybill
    import WireCore

    /// Counts the messages of QoS 2 that a broker publishes again after it has released them.
    ///
    /// Mosquitto 2.0.11 does so when a connection breaks while it repeats its PUBRELs: those that it had not come
    /// to yet it takes for messages that were never received. No client can tell them from new ones, so that they
    /// arrive twice. It gives each message an identifier of its own until all 65,535 are used up, which shows it.
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
