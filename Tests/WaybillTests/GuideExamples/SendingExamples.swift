// The examples of the guide's page about sending many entries (`Sending.md`), compiled.
import Waybill

/// A drawing board.
enum BoardEntry: EntryType {
    case draw(Int)
    case finish

    var topic: String? { "board" }
    var command: EntryCommand { .send(qos: .atLeastOnce) }

    var body: EntryBody {
        switch self {
        case .draw(let stroke): .text("\(stroke)")
        case .finish: .text("done")
        }
    }
}

func enqueueing(_ strokes: [Int], to board: Provider<BoardEntry>) async throws -> Receipt {
    for stroke in strokes { board.enqueue(.draw(stroke)) }
    let last = board.enqueue(.finish)
    let receipt = try await last.receipt
    return receipt
}

func sendingSequence(_ strokes: [Int], to board: Provider<BoardEntry>) async throws -> Int {
    let results = await board.request(contentsOf: strokes.lazy.map { .draw($0) }, window: 64)
    if let error = results.firstError { throw error }
    return results.count
}
