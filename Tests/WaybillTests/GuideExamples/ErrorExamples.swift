import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting

/// The examples of the guide's page on errors.
@Suite("Guide: errors", .inSimulation, .timeLimit(.minutes(30))) struct ErrorExamples {
    private enum ChatEntry: EntryType {
        case join(room: String)
        case say(String, room: String)

        var topic: String? {
            switch self {
            case .join(let room), .say(_, let room): "chat/\(room)"
            }
        }

        var command: EntryCommand {
            switch self {
            case .join: .subscribe
            case .say: .send(qos: .atLeastOnce)
            }
        }

        var body: EntryBody {
            switch self {
            case .join: .none
            case .say(let text, _): .text(text)
            }
        }
    }

    private func shown(by error: WaybillError) async -> String {
        let mock = MockTransport().expect(.send, .failure(error))
        let chat = Provider<ChatEntry>(transport: mock)
        do {
            try await chat.request(.say("hello", room: "lobby"))
            return "sent"
        } catch WaybillError.Code.unauthorized {
            return "sign in"
        } catch let error as WaybillError where error.mqttReason?.code == .quotaExceeded {
            return "too much"
        } catch let error as WaybillError where error.isRetryable {
            return "retry"
        } catch let error as WaybillError {
            return "\(error.errorDescription ?? ""). \(error.recoverySuggestion ?? "")"
        } catch {
            return "cancelled"
        }
    }

    @Test("A caller chooses by code and by reason, and shows what to do")
    func choosing() async {
        #expect(await shown(by: WaybillError(.unauthorized, "no")) == "sign in")
        #expect(await shown(by: WaybillError(.timedOut, "no answer")) == "retry")
        let quota = WaybillError(.rejected, "no", underlying: MQTTReason(.quotaExceeded))
        #expect(await shown(by: quota) == "too much")
        #expect(
            await shown(by: WaybillError(.unsupported, "there are no headers"))
                == """
                there are no headers (command send, topic chat/lobby). Leave out what the transport or the server cannot do, or \
                choose another transport.
                """
        )
    }

    @Test("A loop skips what cannot be decoded, and bodies are logged when they are asked for")
    func skipping() async throws {
        let mock = MockTransport().expect(.subscribe)
        let lines = LockedBox([String]())
        let logger = ClosureWireLogger { record in lines.change { $0.append(record.line) } }
        let chat = Provider<ChatEntry>(transport: mock)
            .logged(logger, bodies: .shownAlthoughTheyMayHoldSecrets)
        let messages = try await chat.messages(.join(room: "lobby"), as: Int.self)
        mock.push("no number", to: "chat/lobby")
        mock.push("42", to: "chat/lobby")
        let valid = messages.skippingFailures { error in lines.change { $0.append("\(error)") } }
        for try await number in valid {
            #expect(number == 42)
            break
        }
        #expect(lines.value.contains { $0.hasSuffix("no number") })
        #expect(lines.value.contains { $0.hasPrefix("decodingFailed") })
        // The form without a closure.
        mock.push("43", to: "chat/lobby")
        for try await number in messages.skippingFailures {
            #expect(number == 43)
            break
        }
    }
}
