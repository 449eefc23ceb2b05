import CommandText
import Dispatch
import Synchronization
import Waybill

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Ends the command in order when the process is interrupted: its task is cancelled, so that it disconnects.
///
/// A second signal ends the process at once.
enum Interruption {
    private static let received = Mutex<ExitStatus?>(nil)

    /// The status of the signal that was received; nil without one.
    static var status: ExitStatus? { received.withLock { $0 } }

    /// Runs the body of a command, and exits the process with its status.
    ///
    /// - Parameter body: Runs outside of the main actor. Returns the status.
    static func run(_ body: @escaping @Sendable () async throws -> ExitStatus) async -> Never {
        signal(SIGPIPE, SIG_IGN)
        let task = Task.detached { try await body() }
        let sources = [(SIGINT, ExitStatus.interrupted), (SIGTERM, .terminated)].map { pair in
            signal(pair.0, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: pair.0, queue: .global())
            source.setEventHandler {
                let isFirst = received.withLock { status in
                    defer { status = pair.1 }
                    return status == nil
                }
                guard isFirst else { _exit(pair.1.rawValue) }
                task.cancel()
            }
            source.activate()
            return source
        }
        var status: ExitStatus
        do {
            status = try await task.value
        } catch let failure as Failure {
            status = failure.status
            if Self.status == nil { Output.complain(failure.message) }
        } catch let error as TextError {
            status = .usage
            Output.complain(error.description)
        } catch is ClosedPipe {
            status = .done
        } catch let error as WaybillError {
            let failure = Failure(error, at: "waybill")
            status = failure.status
            if Self.status == nil { Output.complain(failure.message) }
        } catch is CancellationError {
            status = .failed
        } catch {
            status = .failed
            Output.complain("\(error)")
        }
        withExtendedLifetime(sources) {}
        Output.removeEmptyFiles()
        exit((Self.status ?? status).rawValue)
    }
}

/// Thrown when the reader of standard output has closed its end.
struct ClosedPipe: Error {}
