import Waybill
import WireCore

extension WebSocketClient {
    /// The messages of a connection, as an asynchronous sequence.
    ///
    /// It ends when the connection does: without an error after a normal end (1000, 1001, or no code), with
    /// `connectionLost`, `protocolViolation` or `limitExceeded` otherwise, once.
    public struct Messages: AsyncSequence, Sendable {
        let socket: WebSocketClient

        /// Begins to read.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(reader: WebSocketReading(socket))
        }

        /// One loop.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let reader: WebSocketReading

            /// The next message; nil at the end.
            ///
            /// - Throws: `WaybillError` as the sequence says, `CancellationError`.
            public mutating func next() async throws -> Message? {
                try await reader.next()
            }

            /// As ``next()``, on the caller's actor: a loop over messages that are there lets others run there each 256
            /// messages.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Message? {
                try await reader.next()
            }
        }
    }
}

/// One loop's place in a connection: what it took and has not used goes back when it is gone.
///
/// Used by one iterator alone, so nothing here is locked.
final class WebSocketReading {
    private let socket: WebSocketClient
    private let isAlone: Bool
    private var batch: [WebSocketClient.Message] = []
    private var position = 0
    private var turn = Turn()

    init(_ socket: WebSocketClient) {
        self.socket = socket
        isAlone = socket.session.beginReading()
    }

    deinit {
        if isAlone { socket.session.endReading(unused: batch[position...]) }
    }

    func next() async throws -> WebSocketClient.Message? {
        guard isAlone else {
            throw WaybillError(.invalidEntry, "another loop reads this connection")
        }
        if turn.endIfOver() { await Turn.giveWay() }
        if position == batch.count {
            batch = []
            position = 0
            guard let more = try await socket.session.take() else { return nil }
            batch = more
        }
        defer { position += 1 }
        turn.advance()
        return batch[position]
    }
}
