import Waybill

/// Puts numbered jobs into the pool.
struct Producer: Sendable {
    let pool: JobPool
    let provider: Provider<JobEntry>

    /// Submits the jobs, several at a time, each until the broker has accepted it.
    ///
    /// - Parameter numbers: The numbers of the jobs.
    func submit(_ numbers: Range<Int>) async {
        let lanes = 20
        await withTaskGroup { group in
            for lane in 0..<lanes {
                group.addTask {
                    for number in stride(
                        from: numbers.lowerBound + lane,
                        to: numbers.upperBound,
                        by: lanes
                    ) {
                        await submit(number)
                    }
                }
            }
        }
    }

    private func submit(_ number: Int) async {
        while true {
            do {
                let receipt = try await provider.request(.submit("\(number)", pool))
                // MQTT 5, 3.4.2.1: there is no subscription yet, so the broker has dropped the job.
                guard receipt.reason == "No matching subscribers" else { return }
            } catch {
                // The broker may have the job or not. It is submitted again, so it may be done twice.
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }
}
