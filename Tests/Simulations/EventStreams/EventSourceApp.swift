import Waybill
import WaybillSSE
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An app that opens and closes an `EventSource`. Its handlers must get every event once.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class EventSourceApp: @unchecked Sendable {
    let topic: String
    let reader: EventReader
    var isStopping = false
    private let name: String
    private let world: SimulatedWorld
    private let source: EventSource
    private let hints = ConnectionHints()
    /// True after the app has closed the source with ``EventSource/disconnect()``.
    private var isDisconnected = true
    private var isHandling = false
    /// The number of handlers that were called after the source was closed.
    private var lateCount = 0

    init(
        _ name: String,
        _ url: String,
        _ topic: String,
        _ configuration: SSEConfiguration,
        in world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) throws {
        self.name = "\(name)'s source"
        self.topic = topic
        self.world = world
        reader = EventReader("\(name)'s source", topic, from: 0, in: world, ledger)
        var configuration = configuration
        configuration.hints = [hints]
        source = try EventSource(url: "\(url)/\(topic)", configuration: configuration)
        source.onOpen { [weak self] in
            self?.handle { $0.expect(.open, "onOpen") }
        }
        let take: @Sendable (EventSource.Event) -> Void = { [weak self] event in
            self?.handle {
                $0.expect(.open, "a handler of events")
                $0.reader.take(Int(event.data), event.lastEventID, event.type)
            }
        }
        source.onMessage(take)
        for type in EventReader.types.dropFirst() {
            source.addEventListener(type, handler: take)
        }
        source.onComplete { [weak self] completion in
            self?.handle { $0.complete(completion) }
        }
    }

    private func handle(_ body: (EventSourceApp) -> Void) {
        world.expect(!isHandling, "\(name): two handlers run at once")
        if isDisconnected {
            // One handler may already have been on its way when the app called disconnect().
            lateCount += 1
            world.expect(lateCount == 1, "\(name): handlers are called after disconnect()")
        }
        isHandling = true
        body(self)
        isHandling = false
    }

    private func expect(_ state: EventSource.ReadyState, _ handler: String) {
        // A handler that was already on its way may run after disconnect().
        guard !isDisconnected else { return }
        world.expect(
            source.readyState == state,
            "\(name): it is \(source.readyState) in \(handler), not \(state)"
        )
    }

    private func complete(_ completion: EventSource.Completion) {
        expect(completion.willReconnect ? .connecting : .closed, "onComplete")
        world.note(
            "\(name) has ended: \(completion.status ?? 0) \(completion.error?.description ?? "")"
        )
        guard !completion.willReconnect else { return }
        let passing: [WaybillError.Code] = [.unauthorized]
        guard let error = completion.error, passing.contains(error.code) else {
            return world.fail("\(name) has given up: \(completion)")
        }
        source.connect()
    }

    func run() async {
        isDisconnected = false
        source.connect(lastEventID: "0")
        while !isStopping, world.elapsed < world.faults.until {
            try? await Task.sleep(for: world.random(.zero ... .seconds(40)))
            guard !isStopping, world.elapsed < world.faults.until else { break }
            if world.chance(0.5) {
                world.note("\(name) pauses")
                hints.send(.pause)
                try? await Task.sleep(for: world.random(.zero ... .seconds(8)))
                world.note("\(name) goes on")
                hints.send(.resume)
                continue
            }
            world.note("\(name) is closed")
            source.disconnect()
            (isDisconnected, lateCount) = (true, 0)
            try? await Task.sleep(for: world.random(.zero ... .seconds(3)))
            isDisconnected = false
            world.note("\(name) is opened")
            source.connect()
        }
    }

    func end() async {
        await source.shutdown()
        world.expect(source.readyState == .closed, "\(name) is \(source.readyState) in the end")
    }
}
