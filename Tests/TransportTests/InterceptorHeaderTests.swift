import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting

/// Headers for frames that have no place for them.
@Suite("Headers of interceptors and of entries", .inSimulation, .timeLimit(.minutes(30)))
struct InterceptorHeaderTests {
    /// Adds a header to every request.
    private struct Tagging: Interceptor {
        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            request.headers["tag"] = "1"
        }
    }

    private enum Kind: CaseIterable, Sendable {
        case mqtt311, stomp, events

        func transport(_ bench: LoopbackBench) throws -> any Transport {
            switch self {
            case .mqtt311: try bench.mqtt { $0.version = .v3_1_1 }
            case .stomp: try bench.stomp()
            case .events: try bench.transport(.eventStream)
            }
        }

        /// The commands whose frames take no headers.
        var commands: [EntryCommand] {
            switch self {
            case .mqtt311: [.connect, .send, .subscribe, .unsubscribe, .disconnect]
            case .stomp: [.disconnect]
            case .events: [.connect, .disconnect]
            }
        }
    }

    private static func perform(
        _ command: EntryCommand,
        _ provider: Provider<AnyEntry>,
        headers: Headers = [:]
    ) async throws {
        let kinds: [EntryCommand.Kind] = [.send, .subscribe, .unsubscribe]
        let topic = kinds.contains(command.kind) ? "t" : nil
        let entry = AnyEntry(topic: topic, command: command, headers: headers)
        if command.kind == .subscribe {
            _ = try await provider.messages(entry)
        } else {
            try await provider.request(entry)
        }
    }

    @Test("Those of an interceptor are left out", arguments: Kind.allCases)
    private func ofInterceptor(kind: Kind) async throws {
        let bench = LoopbackBench()
        let transport = try kind.transport(bench)
        let provider = Provider<AnyEntry>(transport: transport).intercepted(Tagging())
        for command in kind.commands { try await Self.perform(command, provider) }
        await transport.shutdown()
    }

    @Test("Those that the entry states are refused", arguments: Kind.allCases)
    private func ofEntry(kind: Kind) async throws {
        for command in kind.commands {
            let bench = LoopbackBench()
            let transport = try kind.transport(bench)
            for provider in [
                Provider<AnyEntry>(transport: transport),
                Provider<AnyEntry>(transport: transport).intercepted(Tagging()),
            ] {
                let error = await expectError(.unsupported) {
                    try await Self.perform(command, provider, headers: ["stated": "1"])
                }
                #expect(error?.option == .headers, "\(kind) \(command.kind)")
            }
            await transport.shutdown()
        }
    }
}
