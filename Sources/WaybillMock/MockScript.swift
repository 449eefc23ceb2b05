package import Waybill
import WireCore

/// The outcomes that a mock was told, and the requests that it got.
package struct MockScript: Sendable {
    private struct Rule: Sendable {
        let command: EntryCommand.Kind
        let topic: String?
        var outcomes: [MockTransport.Outcome]

        func covers(_ request: Request) -> Bool {
            guard command == request.command.kind else { return false }
            guard let topic else { return true }
            return request.topic?.hasSameBytes(as: topic) ?? false
        }
    }

    private var rules: [Rule] = []
    package private(set) var requests: [Request] = []
    /// The requests that no rule covered.
    package private(set) var unexpected: [Request] = []
    package private(set) var connects: [Request] = []

    package init() {}

    /// Adds a rule, which precedes the earlier ones; without outcomes, requests succeed.
    package mutating func expect(
        _ command: EntryCommand.Kind,
        topic: String?,
        _ outcomes: [MockTransport.Outcome]
    ) {
        let outcomes = outcomes.isEmpty ? [.success] : outcomes
        rules.append(Rule(command: command, topic: topic, outcomes: outcomes))
    }

    /// Takes the next outcome of a request; nil when no rule covers it.
    ///
    /// The last outcome of a rule stays.
    package mutating func takeOutcome(of request: Request) -> MockTransport.Outcome? {
        guard let index = rules.lastIndex(where: { $0.covers(request) }) else { return nil }
        let outcome = rules[index].outcomes.first
        if rules[index].outcomes.count > 1 { rules[index].outcomes.removeFirst() }
        return outcome
    }

    /// Records a request and takes its outcome.
    /// - Throws: `rejected` when no rule covers the request.
    package mutating func record(_ request: Request) throws(WaybillError) -> MockTransport.Outcome {
        requests.append(Self.recorded(request))
        if let outcome = takeOutcome(of: request) { return outcome }
        unexpected.append(Self.recorded(request))
        throw WaybillError(
            .rejected,
            "the mock was not told to expect this request",
            topic: request.topic,
            command: request.command.name
        )
    }

    /// Records a request that opens a connection or a stream.
    package mutating func recordConnect(_ request: Request) {
        connects.append(Self.recorded(request))
    }

    /// Leaves out the interceptors, which may keep the transport alive.
    private static func recorded(_ request: Request) -> Request {
        var recorded = request
        recorded.chain = nil
        return recorded
    }
}
