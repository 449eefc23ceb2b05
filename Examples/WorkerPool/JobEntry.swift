import Waybill
import WaybillMQTT
import WaybillSTOMP

/// The place where jobs wait: a shared subscription of MQTT 5, or a queue of a STOMP broker.
struct JobPool: Sendable {
    /// The protocol of a pool.
    enum Wire: String, Sendable {
        case mqtt
        case stomp
    }

    let wire: Wire
    /// The name of the topic or of the queue.
    let name: String
    /// The number of jobs that a worker may hold without having done them.
    ///
    /// A small number spreads jobs evenly, and a killed worker delays few of them.
    let prefetch: UInt16

    /// The topic or the queue, in the words of the protocol.
    fileprivate var address: String { wire == .mqtt ? name : "/queue/\(name)" }

    /// Where jobs are set aside that have failed.
    var failed: JobPool { JobPool(wire: wire, name: "\(name)-failed", prefetch: prefetch) }

    /// The headers that declare a quorum queue. They must be the same wherever the queue is named.
    fileprivate var queueHeaders: Headers {
        wire == .stomp
            ? ["x-queue-type": "quorum", "durable": "true", "auto-delete": "false"] : [:]
    }
}

/// Everything that producers and workers say to a broker.
enum JobEntry: EntryType {
    /// Puts a job into the pool.
    case submit(String, JobPool)
    /// Takes jobs from the pool.
    case take(JobPool)
    /// A job is done.
    case done(Message.ID)
    /// A job has failed again and again, and is put where an operator can look at it.
    case setAside(String, JobPool)
    /// No further jobs are wanted.
    case leave(JobPool)

    var topic: String? {
        switch self {
        case .submit(_, let pool), .take(let pool), .leave(let pool): pool.address
        case .setAside(_, let pool): pool.failed.address
        case .done: nil
        }
    }

    var command: EntryCommand {
        switch self {
        case .submit(_, let pool), .setAside(_, let pool):
            pool.wire == .mqtt ? .send(qos: .atLeastOnce) : .send
        case .take(let pool):
            // MQTT 5, 4.8.2: each message goes to one of the subscribers that share the name.
            pool.wire == .mqtt
                ? .subscribe(qos: .atLeastOnce, .shareName("workers"), .manualAcknowledgement)
                : .subscribe(.ackMode(.clientIndividual), .manualAcknowledgement)
        case .done(let id): .ack(id)
        case .leave: .unsubscribe
        }
    }

    var body: EntryBody {
        switch self {
        case .submit(let job, _), .setAside(let job, _): .text(job)
        case .take, .done, .leave: .none
        }
    }

    var headers: Headers {
        switch self {
        case .submit(_, let pool), .setAside(_, let pool):
            var headers = pool.queueHeaders
            if pool.wire == .stomp { headers["persistent"] = "true" }
            return headers
        case .take(let pool):
            var headers = pool.queueHeaders
            if pool.wire == .stomp { headers["prefetch-count"] = "\(pool.prefetch)" }
            return headers
        case .done, .leave: return [:]
        }
    }
}

extension JobPool {
    /// A provider for one client of the pool.
    ///
    /// - Parameters:
    ///   - url: The address of the broker; its user and password are the credentials.
    ///   - client: The name of the client. An MQTT session belongs to it, so no two processes may use it at once.
    ///   - keepsSession: Whether the broker keeps an MQTT session, with its jobs, while the client is away.
    /// - Returns: The provider.
    func provider(url: String, client: String, keepsSession: Bool) throws -> Provider<JobEntry> {
        switch wire {
        case .mqtt:
            let transport = try MQTTTransport(url: url) {
                $0.version = .v5
                $0.clientIdentifier = client
                $0.session.cleanStart = !keepsSession
                if keepsSession { $0.session.expiry = .seconds(24 * 3_600) }
                $0.limits.receiveMaximum = prefetch
            }
            return Provider(transport: transport)
        case .stomp:
            let transport = try STOMPTransport(url: url) { $0.host = "/" }
            return Provider(transport: transport)
        }
    }
}

extension Receipt {
    /// Whether the broker has the job. Without a subscription it drops it, and says so (MQTT 5, 3.4.2.1).
    var wasTaken: Bool { reason?.hasPrefix("No matching subscribers") != true }
}
