import Waybill
import WireCore

extension WebSocketClient {
    /// The messages of a connection, as an asynchronous sequence.
    ///
    /// It ends with the connection: without an error after a normal end (1000, 1001, or no code). Otherwise it throws
    /// `connectionLost`, `protocolViolation` or `limitExceeded` once.
    public struct Messages: AsyncSequence, Sendable {
        let socket: WebSocketClient

        /// Starts to read.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(reader: WebSocketReading(socket))
        }

        /// An iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let reader: WebSocketReading

            /// Returns the next message; nil at the end.
            ///
            /// - Throws: The sequence's `WaybillError`; `CancellationError`.
            public mutating func next() async throws -> Message? {
                try await reader.next()
            }

            /// Does the same as ``next()``, on the caller's actor.
            ///
            /// It yields the actor after every 256 messages, so that other tasks on it can run.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Message? {
                try await reader.next()
            }
        }
    }
}

/// One iterator's position in a connection; its unused messages return to the connection when it is gone.
///
/// Used by one iterator only, so it needs no lock.
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
