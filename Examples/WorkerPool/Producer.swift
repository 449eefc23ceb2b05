import Waybill

/// Puts numbered jobs into the pool.
struct Producer: Sendable {
    let pool: JobPool
    let provider: Provider<JobEntry>
    /// Receives what the producer has to say.
    var report: @Sendable (String) -> Void = { _ in }

    /// Submits the jobs, several at a time, each until the broker has accepted it.
    ///
    /// - Parameter numbers: The numbers of the jobs.
    /// - Throws: An error that no repetition can help, such as `unauthorized`; `CancellationError`.
    func submit(_ numbers: Range<Int>) async throws {
        let lanes = 20
        try await withThrowingTaskGroup { group in
            for lane in 0..<lanes {
                group.addTask {
                    for number in stride(
                        from: numbers.lowerBound + lane,
                        to: numbers.upperBound,
                        by: lanes
                    ) {
                        try await submit(number)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func submit(_ number: Int) async throws {
        while true {
            do {
                let receipt = try await provider.request(.submit("\(number)", pool))
                if receipt.wasTaken { return }
            } catch let error as WaybillError where error.isRetryable {
                // The broker may have the job or not. It is submitted again, so it may be done twice.
                report("job \(number): \(error)")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}
