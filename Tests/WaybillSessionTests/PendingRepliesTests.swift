import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting
import WireCore

@Suite("Requests that wait for answers", .inSimulation, .timeLimit(.minutes(30)))
struct PendingRepliesTests {
    private let clock = ManualClock()
    private let desk: PendingReplies
    /// The connection of a request.
    private final class Connection: Sendable {}
    private let request = Request(topic: "t", command: .send)

    init() {
        let clock = clock
        desk = PendingReplies(
            in: LinkEnvironment(
                dialer: ScriptlessDialer(),
                clock: clock.linkTimers,
                random: { 0 }
            )
        )
    }

    private struct ScriptlessDialer: Dialer {
        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            throw .unsupported("dialing")
        }
    }

    private func answer(_ text: String, to correlation: String?) -> Message {
        var message = Message(topic: "r", body: Payload(text))
        message[.correlationData] = correlation.map { Array($0.utf8) }
        return message
    }

    /// Makes a request, and returns the correlation that its reply must carry.
    private func ask(
        over connection: Connection? = nil
    ) async -> (String, Task<Receipt, any Error>) {
        let sent = Promise<String>()
        let task = Task { [desk, request] in
            try await desk.answer(to: request, within: .seconds(30)) { correlation in
                if let connection { desk.noteSent(correlation, over: connection) }
                sent.resolve(.success(correlation))
                return Receipt(topic: "t", reason: "sent")
            }
        }
        return ((try? await sent.value()) ?? "", task)
    }

    private func code(_ task: Task<Receipt, any Error>) async -> WaybillError.Code? {
        do { _ = try await task.value } catch { return (error as? WaybillError)?.code }
        return nil
    }

    @Test("A thousand at once, answered in reverse order: each has its own answer")
    func reversed() async throws {
        var asked: [(correlation: String, task: Task<Receipt, any Error>)] = []
        for _ in 0..<1_000 { asked.append(await ask()) }
        #expect(Set(asked.map(\.correlation)).count == 1_000 && desk.count == 1_000)
        for (correlation, _) in asked.reversed() {
            desk.take(answer(correlation, to: correlation))
        }
        for (correlation, task) in asked {
            let receipt = try await task.value
            #expect(receipt.reply?.text == correlation)
        }
        #expect(desk.count == 0 && desk.strayCount == 0)
    }

    @Test("An answer that comes before the sending is done")
    func early() async throws {
        let receipt = try await desk.answer(to: request, within: .seconds(30)) {
            [desk] correlation in
            desk.take(answer("early", to: correlation))
            try await Task.sleep(for: .seconds(3_600))
            return Receipt()
        }
        #expect(receipt.reply?.text == "early" && desk.count == 0)
    }

    @Test("No answer in time: timedOut, and nothing is left; a late one is counted")
    func late() async throws {
        let (correlation, task) = await ask()
        clock.advance(by: .seconds(29))
        #expect(desk.count == 1)
        clock.advance(by: .seconds(1))
        #expect(await code(task) == .timedOut)
        #expect(desk.count == 0)
        desk.take(answer("late", to: correlation))
        #expect(desk.strayCount == 1)
    }

    @Test("A caller that is cancelled leaves nothing")
    func cancelled() async throws {
        let (correlation, task) = await ask()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(desk.count == 0)
        desk.take(answer("late", to: correlation))
        #expect(desk.strayCount == 1)
    }

    @Test("What cannot be sent fails with that")
    func notSent() async throws {
        let error = await #expect(throws: WaybillError.self) {
            try await desk.answer(to: request, within: .seconds(30)) { _ in
                throw WaybillError(.unauthorized, "no")
            }
        }
        #expect(error?.code == .unauthorized && error?.topic == "t" && desk.count == 0)
    }

    @Test("Replies without a request are counted, and disturb no request")
    func strays() async throws {
        let (correlation, task) = await ask()
        for stray in [nil, "", "1", correlation + "0", "2-00"] {
            desk.take(answer("stray", to: stray))
        }
        var odd = answer("stray", to: nil)
        odd[.correlationData] = [0xFF]
        desk.take(odd)
        #expect(desk.strayCount == 6 && desk.count == 1)
        desk.take(answer("right", to: correlation))
        #expect(try await task.value.reply?.text == "right")
        // A second copy of the reply.
        desk.take(answer("right", to: correlation))
        #expect(desk.strayCount == 7)
    }

    @Test("The end of a connection fails what went over it, and only that")
    func connectionEnds() async throws {
        let (first, second) = (Connection(), Connection())
        let (_, lost) = await ask(over: first)
        let (fine, answered) = await ask(over: second)
        let (_, unsent) = await ask()
        desk.fail(sentOver: first, WaybillError(.connectionLost, "over"))
        #expect(await code(lost) == .connectionLost)
        #expect(desk.count == 2)
        desk.take(answer("x", to: fine))
        #expect(try await answered.value.reply?.text == "x")
        desk.fail(WaybillError(.shutDown, "over"))
        #expect(desk.count == 1)
        unsent.cancel()
        await #expect(throws: CancellationError.self) { try await unsent.value }
    }
}
