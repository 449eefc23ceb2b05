import EventStreamWire
import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One connection of a stream: its request, and the events that come over it.
final class SSEConnection: Sendable {
    private let stream: SSEStream
    private let source: MessageSource
    private let driver: Driver<EventStreamConnection>
    private let timers: any TimerSource
    private let over = Promise<EventStreamClosure>()
    /// The ID that the last message notes when it is taken.
    private let noted: Locked<String>

    private init(
        _ link: OpenedLink,
        _ plan: HTTPRequestPlan,
        _ stream: SSEStream,
        _ source: MessageSource
    ) {
        self.stream = stream
        self.source = source
        timers = link.timers
        noted = Locked(stream.lastEventID)
        let configuration = stream.engine.configuration
        let core = EventStreamConnection(
            lastEventID: stream.lastEventID,
            limits: EventStreamLimits(
                lineByteCount: configuration.lineLimit,
                eventByteCount: configuration.limits.eventSize
            ),
            acceptsCompression: plan.invitesCompression(configuration),
            idleTimeout: configuration.timeouts.silence,
            reportsComments: stream.announces || !stream.engine.observers.isEmpty
        )
        driver = Driver(
            core: core,
            stream: link.stream,
            timers: link.timers,
            account: stream.pressure.account
        )
    }

    /// Connects, asks, and passes on events until the stream is over.
    ///
    /// - Parameters:
    ///   - plan: The request.
    ///   - stream: The stream.
    ///   - source: Takes the messages.
    /// - Returns: How the stream has ended, whether it was open, and whether its answer may have been read late.
    /// - Throws: `WaybillError`; `CancellationError` for an attempt that this side has ended.
    static func run(
        _ plan: HTTPRequestPlan,
        for stream: SSEStream,
        _ source: MessageSource
    ) async throws -> (EventStreamClosure, wasOpen: Bool, wasHeld: Bool) {
        let timeout = stream.engine.configuration.timeouts.connect
        let link = try await stream.engine.links.open(plan.target, within: timeout)
        let connection = SSEConnection(link, plan, stream, source)
        // The driver lets go of the handler after the end.
        connection.driver.start(
            .init(
                receive: { connection.receive($0) },
                end: { connection.over.resolve(connection.result(of: $0)) }
            )
        )
        defer {
            connection.driver.close()
            _ = stream.letGo()
        }
        guard stream.take(connection) else { throw CancellationError() }
        try connection.request(plan, within: link.timeLeft)
        let closure = try await connection.over.value()
        let (wasOpen, wasHeld) = stream.letGo()
        return (closure, wasOpen, wasHeld)
    }

    private func request(
        _ plan: HTTPRequestPlan,
        within timeout: Duration
    ) throws(WaybillError) {
        let (host, configuration) = (plan.target.host, stream.engine.configuration)
        stream.report { $0.requesting(host) }
        configuration.log(
            .outbound,
            name: plan.method,
            topic: stream.topic,
            plan.description
        )
        do {
            try driver.withCore(.immediate) { (core, now) throws(HTTPRequestError) in
                let head = plan.head(configuration, adding: fields(core.lastEventID))
                try core.request(head, body: plan.body, timeout: timeout, at: now)
            }
        } catch {
            throw SSEMapping.error(error)
        }
    }

    /// The fields of each request for a stream, beside the entry's.
    private func fields(_ lastEventID: String) -> [(String, String)] {
        // What Fetch adds for the cache mode "no-store" (Fetch Standard, 4.5), which an EventSource has.
        var fields = [
            ("Accept", "text/event-stream"), ("Cache-Control", "no-cache"), ("Pragma", "no-cache"),
        ]
        // An ID that a field cannot hold (a stray control character) is not sent at all.
        if !lastEventID.isEmpty, lastEventID.utf8.allSatisfy(HTTPSyntax.isValueByte) {
            fields.append(("Last-Event-ID", lastEventID))
        }
        return fields
    }

    /// Ends the stream in order.
    func close() {
        driver.withCore(.immediate) { core, _ in core.close() }
    }

    func setReading(_ isReading: Bool) {
        driver.setReading(isReading)
    }

    /// What the end of the connection means for the stream.
    private func result(of error: LinkError?) -> Result<EventStreamClosure, any Error> {
        guard let error else { return .success(.closed) }
        // A server may refuse the client's certificate only now; a stream that has begun is asked for again.
        if case .tls = error, !stream.isOpen { return .failure(WaybillError(error)) }
        return .success(.connection(.endOfStream))
    }

    // MARK: Events

    private func receive(_ events: [EventStreamConnection.Event]) {
        var hasEvents = false
        var closure: EventStreamClosure?
        var batch: [Message] = []
        for event in events {
            switch event {
            case .opened(let head):
                let response = EventStreamResponse(head)
                stream.engine.configuration.log(
                    .inbound,
                    name: "\(head.status)",
                    topic: stream.topic,
                    SSEMapping.reason(head)
                )
                stream.noteOpened(at: timers.now)
                stream.engine.openedCount.withLock { $0 += 1 }
                stream.engine.observers.report {
                    .opened(topic: stream.topic, response, serial: $0)
                }
                if stream.announces { batch.append(SSENotice(.opened(response)).message) }
            case .comment(let text):
                stream.engine.observers.report {
                    .comment(topic: stream.topic, text, serial: $0)
                }
                // Its text counts as memory, so that a flood of comments holds the server back.
                if stream.announces {
                    batch.append(SSENotice(.comment, body: Payload(text)).message)
                }
            case .events(let arrivals):
                hasEvents = true
                append(arrivals, to: &batch)
            case .skipped(let skipped):
                hasEvents = true
                stream.engine.events.report(
                    .dropped(
                        skipped.count,
                        byteCount: skipped.byteCount,
                        topic: stream.topic,
                        reason: .tooLarge
                    )
                )
            case .closed(let reason): closure = reason
            }
        }
        let (id, time) = driver.withCore { core, _ in (core.lastEventID, core.reconnectionTime) }
        let newTime = stream.noteReceived(id, time, hasEvents: hasEvents)
        if stream.announces, let newTime {
            batch.insert(SSENotice(.reconnectionTime(newTime)).message, at: 0)
        }
        // Moved, because the consumer copies the messages if others still refer to them.
        if !batch.isEmpty { deliver(consume batch) }
        // The end of the connection is told behind this, with its cause.
        if let closure, closure != .connection(.endOfStream) { over.resolve(.success(closure)) }
    }

    /// Adds the messages of events with the types that were asked for.
    private func append(_ arrivals: EventStreamArrivals, to batch: inout [Message]) {
        let isLogged = stream.engine.configuration.wireLogger != nil
        let (topic, types) = (stream.topic, stream.eventTypes)
        var copier = SliceCopier()
        var noted = stream.notesProgress ? noted.withLock { $0 } : nil
        let observers = stream.engine.observers
        let isNumbered = !observers.isEmpty
        if batch.isEmpty { batch.reserveCapacity(arrivals.count) }
        for index in 0..<arrivals.count {
            let type = arrivals.type(at: index)
            if isLogged {
                let data = Payload(arrivals.data(at: index))
                stream.engine.configuration.log(
                    .inbound,
                    name: "event",
                    topic: topic,
                    "event \(type)",
                    data
                )
            }
            if let types, !types.contains(where: type.hasSameBytes(as:)) { continue }
            // Made in its place: a copy counts the references of each part.
            if noted == nil, !isNumbered {
                batch.append(SSEMapping.message(arrivals, index, topic: topic, copiedBy: &copier))
                continue
            }
            var message = SSEMapping.message(arrivals, index, topic: topic, copiedBy: &copier)
            if isNumbered { message[.serial] = observers.makeSerial() }
            if let last = noted {
                let id = arrivals.lastEventID(at: index)
                if !id.hasSameBytes(as: last) {
                    // The peer bounds nothing: the server sends as much as is read.
                    message.delivery = stream.noting(id)
                    noted = id
                }
            }
            batch.append(message)
        }
        if let noted { self.noted.withLock { $0 = noted } }
    }

    private func deliver(_ batch: consuming [Message]) {
        stream.engine.events.report(
            contentsOf: batch.map { .received(topic: $0.topic, byteCount: $0.body.count) }
        )
        stream.engine.catchAll.deliver(batch)
        source.deliver(consume batch)
    }
}
