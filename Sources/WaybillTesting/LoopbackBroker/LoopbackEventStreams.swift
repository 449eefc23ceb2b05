import EventStreamWire
import HTTPWire
import STOMPWire
import Waybill
import WaybillLink
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The event streams of the broker, and POST to publish.
struct LoopbackEventStreams: Sendable {
    let hub: LoopbackHub

    func accept(_ stream: any ByteStream, as identifier: UInt64) {
        let core = HTTPServerConnection(
            limits: .init(bodyByteCount: hub.configuration.maximumPacketSize),
            requestTimeout: LoopbackHub.clientTimeout,
            at: hub.environment.clock.now
        )
        let client = HTTPLoopbackClient(
            identifier: identifier,
            service: .eventStream,
            core: core,
            stream: stream,
            timers: hub.environment.clock
        )
        hub.observe(.connected(client: identifier, service: .eventStream))
        hub.serve(client, as: .http(client)) { event, client, hub in
            hub.eventStreams.handle(event, of: client)
        }
    }

    private func handle(_ event: HTTPServerConnection.Event, of client: HTTPLoopbackClient) {
        switch event {
        case .closed(let closure):
            if case .violation(let violation) = closure {
                hub.observe(.violation(client: client.identifier, text: "\(violation)"))
            }
            hub.observe(.ended(client: client.identifier))
            hub.withState { $0.eventTopics.remove(client.identifier) }
        case .request(let head, let body):
            if hub.withState({ $0.hasForgotten(client.identifier) }) { return }
            hub.log(client.identifier, isOutbound: false, "\(head.method) \(head.target)")
            if let refusal = refusal(of: head) {
                hub.observe(.refused(client: client.identifier))
                return respond(refusal, client)
            }
            if let answer = hub.withState({ $0.faults.takeAnswer() }) {
                return respond(answer, client)
            }
            guard let topic = Self.topic(head.target) else {
                return respond(.init(404), client)
            }
            switch head.method {
            case "GET", "HEAD": openStream(topic, head, client)
            case "POST", "PUT": publish(topic, head, body, client)
            default: respond(.init(405, headers: ["Allow": "GET, HEAD, POST, PUT"]), client)
            }
        }
    }

    private func respond(_ answer: LoopbackFaults.Answer, _ client: HTTPLoopbackClient) {
        hub.log(client.identifier, isOutbound: true, "\(answer.status)")
        let fields = answer.headers.map { HTTPHeaders.Field(name: $0.name, value: $0.value) }
        client.answer(answer.status, HTTPHeaders(fields), body: answer.body.bytes)
    }

    /// The refusal of a request; nil for none.
    private func refusal(of head: HTTPRequestHead) -> LoopbackFaults.Answer? {
        if let refusal = hub.faults.refusesConnections { return .init(refusal.status) }
        let (user, password) = Self.credentials(of: head)
        if hub.configuration.admits(user, password) { return nil }
        let schemes = hub.configuration.authenticate == nil ? ["Basic"] : ["Bearer", "Basic"]
        let challenges = schemes.map { "\($0) realm=\"loopback\"" }
        return .init(401, headers: ["WWW-Authenticate": challenges.joined(separator: ", ")])
    }

    /// The user name and password of Basic (RFC 7617), or no name and the token of Bearer (RFC 6750).
    private static func credentials(
        of head: HTTPRequestHead
    ) -> (user: String?, password: String?) {
        let words = (head.headers.first("authorization") ?? "").split(atByte: " ")
        guard words.count == 2 else { return (nil, nil) }
        if HTTPSyntax.areSameName(words[0], "Bearer") { return (nil, String(words[1])) }
        guard HTTPSyntax.areSameName(words[0], "Basic"),
            let data = Data(base64Encoded: String(words[1]))
        else { return (nil, nil) }
        // The first colon is the border (RFC 7617, 2).
        let pair = String(decoding: data, as: UTF8.self).split(atByte: ":", maxSplits: 1)
        return pair.count == 2 ? (String(pair[0]), String(pair[1])) : (nil, nil)
    }

    /// The topic of a path: without its first slash and its query, percent-decoded.
    /// - Returns: The topic; nil for none, and for what is not UTF-8.
    private static func topic(_ target: String) -> String? {
        var bytes: [UInt8] = []
        var rest = target.utf8.prefix { $0 != UInt8(ascii: "?") }.dropFirst()
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                rest.prefix(2).allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let decoded = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(decoded)
            rest = rest.dropFirst(2)
        }
        return bytes.isEmpty ? nil : Payload(bytes).text
    }

    // MARK: Streams

    private func openStream(_ topic: String, _ head: HTTPRequestHead, _ client: HTTPLoopbackClient)
    {
        guard !hub.faults.refusesSubscription(topic) else {
            return respond(.init(403), client)
        }
        // Before the head: a client that hears that the stream is open has everything from then on.
        hub.withState { state in
            state.eventTopics.open(
                topic,
                after: head.headers.first("last-event-id"),
                client.identifier
            )
        }
        hub.observe(.subscribed(client: client.identifier, topic: topic))
        let start = streamStart
        hub.log(client.identifier, isOutbound: true, "200 text/event-stream")
        client.withCore { core, now in
            let head = HTTPResponseHead(
                status: 200,
                reason: "OK",
                headers: ["Content-Type": "text/event-stream", "Cache-Control": "no-store"]
            )
            // These fields can be written; a client that has gone gets no stream.
            try? core.beginStream(head, at: now)
            core.stream(start)
        }
        if head.method == "HEAD" {
            return hub.withState { $0.eventTopics.remove(client.identifier) }
        }
        sendEvents(to: client, isFirst: true)
    }

    /// The comment and the reconnection time at the start of each stream.
    private var streamStart: [UInt8] {
        var writer = ByteWriter()
        if let comment = hub.configuration.eventStreamComment {
            EventStreamEncoder.encode(comment: comment, into: &writer)
        }
        // A negative time is none.
        if let retry = hub.configuration.eventStreamRetry {
            try? EventStreamEncoder.encode(retry: retry, into: &writer)
        }
        return writer.bytes
    }

    /// Sends what waits for a client, unless another thread is sending it.
    func sendEvents(to client: HTTPLoopbackClient, isFirst: Bool = false) {
        let faults = hub.faults
        var hasSent = isFirst
        while let (events, sentBefore) = hub.withState({ state in
            state.eventTopics.take(
                for: client.identifier,
                hasSent: hasSent,
                isWithheld: faults.withholdsEvents
            )
        }) {
            hasSent = true
            let allowed = faults.dropsStreamsAfter.map { max($0 - sentBefore, 0) } ?? .max
            client.send(Array(events.prefix(allowed)))
            for event in events.prefix(allowed) {
                hub.log(client.identifier, isOutbound: true, "event \(event.id) \(event.type)")
            }
            guard events.count < allowed else { return client.cut() }
        }
    }

    // MARK: Publishing

    private func publish(
        _ topic: String,
        _ head: HTTPRequestHead,
        _ body: [UInt8],
        _ client: HTTPLoopbackClient
    ) {
        let destination = hub.configuration.relayed(topic)
        hub.withState { $0.eventTopics.note(destination) }
        hub.observe(.published(client: client.identifier, topic: topic, payload: body))
        var headers = STOMPHeaders()
        for (field, name) in [
            ("content-type", STOMPHeaderName.contentType),
            (LoopbackMessage.event, LoopbackMessage.event),
        ] {
            if let value = head.headers.first(field) { headers.append(name, value) }
        }
        let message = LoopbackMessage(destination: destination, headers: headers, body: body)
        do throws(LoopbackFault) {
            try hub.route(message, from: client.identifier, at: client.now)
        } catch {
            return respond(.init(503, body: Payload(error.message)), client)
        }
        if !hub.faults.withholdsReceipts { respond(.init(200), client) }
    }
}
