/// Which of a run's faults happen after all, and how large its parts are: what is changed to find the smallest run that fails.
struct SimulationReduction: Sendable, Equatable {
    /// Kinds that do not happen.
    var leftOut: Set<SimulatedFaults.Kind> = []
    /// How many faults happen, counted from the first.
    var faultLimit = Int.max
    /// The numbers of faults that do not happen, though others after them do.
    var skipped: Set<Int> = []
    /// The sizes of the parts that are smaller than they were.
    var sizes: [String: Int] = [:]

    /// Whether the fault of this kind and number happens.
    func allows(_ kind: SimulatedFaults.Kind, number: Int) -> Bool {
        number <= faultLimit && !leftOut.contains(kind) && !skipped.contains(number)
    }
}
