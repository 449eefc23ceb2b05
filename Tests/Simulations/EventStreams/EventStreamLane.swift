import Waybill
import WaybillSSE
import WaybillTesting

/// A way to send numbers one after another.
enum EventStreamLane: Int, CaseIterable, Sendable {
    /// POST without a policy. The app itself repeats a request that may have arrived.
    case byHand
    /// POST with a retry policy, which never repeats a request that may have arrived.
    case retried
    /// POST with a retry policy, which may repeat the request.
    case idempotent
    /// PUT, which may always be repeated.
    case put

    /// Sends all numbers of an app.
    func run(_ app: EventStreamApp) async {
        let world = app.world
        let topic = "from-\(app.name)-\(rawValue)"
        for number in 0..<world.size(of: "messages", EventStreamApp.laneLength) {
            var isOpen = true
            while isOpen, !app.isStopping {
                isOpen = await send(number, topic, app)
                guard self == .byHand, isOpen, world.chance(0.5) else { break }
                await app.rest(.seconds(1))
            }
            if world.chance(0.5) { await app.rest(.seconds(4)) }
        }
    }

    private func send(_ number: Int, _ topic: String, _ app: EventStreamApp) async -> Bool {
        let world = app.world
        var command: EntryCommand = self == .idempotent ? .send(.idempotent) : .send
        if self == .put { command[.method] = "PUT" }
        if world.chance(0.1) { command[.timeout] = .milliseconds(world.random(50...3_000)) }
        let entry = SimulatedEntry.send(number, to: topic, command)
        var provider = app.provider
        let isRetried = self == .retried || self == .idempotent
        if isRetried { provider = provider.intercepted(RetryPolicy(maximumAttempts: 3)) }
        // For a refused token a new one is fetched, and the request is repeated once. A policy waits between its
        // attempts.
        let tokenTime = Duration.seconds(4)
        let single = (app.sendLimit + tokenTime) * 2
        let limit = isRetried ? (single + .seconds(70)) * 3 : single
        return await app.ledger.send(
            number,
            to: topic,
            isRepeatable: self == .idempotent || self == .put,
            within: limit
        ) { [provider] in
            let call = Task { _ = try await provider.request(entry) }
            var canceller: Task<Void, Never>?
            if world.chance(0.05) {
                canceller = Task {
                    await app.rest(.seconds(1))
                    call.cancel()
                }
            }
            let result = await call.result
            canceller?.cancel()
            try result.get()
        }
    }
}
