import Waybill

/// Takes jobs from the pool, one at a time, until it is stopped.
///
/// A job is acknowledged after it is done. So a job whose worker was killed is done again, by another worker or by the
/// next one with the same name: at least once. A worker that is stopped with ``Stop`` finishes its job and
/// acknowledges it first, so none of its jobs is done again.
///
/// A job that fails is tried again by its worker, and then set aside for an operator. It cannot simply stay
/// unacknowledged: a broker delivers such a job again only over the next connection, and until then it fills one of the
/// places of ``JobPool/prefetch``.
struct Worker: Sendable {
    /// The number of times that a job is tried.
    static let attempts = 3

    let pool: JobPool
    let provider: Provider<JobEntry>
    /// Does a job.
    let work: @Sendable (String) async throws -> Void
    /// Receives what the worker has to say.
    let report: @Sendable (String) -> Void
    /// The pause after the first failure of a job; later ones are longer.
    var pause = Duration.milliseconds(100)

    /// Works until a stop is requested, or until the subscription fails.
    ///
    /// - Throws: The error of the subscription.
    func run(until stop: Stop) async throws {
        let jobs = try await provider.messages(.take(pool))
        report("ready")
        let taking = Task {
            for try await job in jobs {
                // The stop cancels the taking of jobs. A job that has begun is finished and acknowledged, in a task
                // that is not cancelled with this one.
                await Task { await handle(job) }.value
                if Task.isCancelled { return }
            }
        }
        stop.onStop { taking.cancel() }
        do { try await taking.value } catch is CancellationError {}
        await hangUp()
        // An MQTT subscription ends with its stream, and this one has to stay.
        withExtendedLifetime(jobs) {}
        report("stopped")
    }

    private func handle(_ job: Message) async {
        let text = job.text ?? ""
        do {
            if await !isDone(text) {
                let receipt = try await provider.request(.setAside(text, pool))
                guard receipt.wasTaken else {
                    // It stays with this worker, which tries it again after the next connect.
                    return report("job \(text): \(pool.failed.name) has no subscriber")
                }
            }
            if let id = job.id { try await provider.request(.done(id)) }
        } catch {
            // The connection was lost, for instance. The broker delivers the job again over the next one.
            report("job \(text): \(error)")
        }
    }

    /// Tries to do a job, with a pause after each failure.
    private func isDone(_ job: String) async -> Bool {
        for attempt in 1...Self.attempts {
            do {
                try await work(job)
                return true
            } catch {
                report("job \(job), attempt \(attempt): \(error)")
            }
            try? await Task.sleep(for: pause * attempt)
        }
        return false
    }

    /// Hands over: jobs that were delivered and not begun are left to others.
    ///
    /// A queue gives them to another worker when the connection is closed. An MQTT broker keeps them in the session of
    /// this worker's name, for the next worker with that name. So the subscription has to stay: without it, the jobs of
    /// the session would be the last ones that it gets.
    private func hangUp() async {
        do {
            if pool.wire == .stomp { try await provider.request(.leave(pool)) }
            try await provider.disconnect()
        } catch {
            report("\(error)")
        }
        await provider.shutdown()
    }
}
