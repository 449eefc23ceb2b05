import Waybill

/// Takes jobs from the pool, one at a time, until it is stopped.
///
/// A job is acknowledged after it is done. So a job whose worker was killed is done again, by another worker or by the
/// next one with the same name: at least once. A worker that is stopped with ``Stop`` finishes its job and
/// acknowledges it first, so none of its jobs is done again.
struct Worker: Sendable {
    let pool: JobPool
    let provider: Provider<JobEntry>
    /// Does a job.
    let work: @Sendable (String) async throws -> Void
    /// Receives what the worker has to say.
    let report: @Sendable (String) -> Void

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
        report("stopped")
    }

    private func handle(_ job: Message) async {
        do {
            try await work(job.text ?? "")
            if let id = job.id { try await provider.request(.done(id)) }
        } catch {
            // It was not acknowledged, so the broker delivers the job again.
            report("job \(job.text ?? ""): \(error)")
        }
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
