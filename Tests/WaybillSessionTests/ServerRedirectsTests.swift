import Testing
import WaybillLink
import WaybillSession
import WireCore

/// What servers say about other servers, as a value.
///
/// Each row is a story of events, and what the last one leads to.
@Suite("Servers that refer to others: the value") struct ServerRedirectsTests {
    enum Event: Sendable {
        /// A connect begins.
        case connect(again: Bool = false)
        /// The next server of the connect refuses with a reference.
        case refer([String], forGood: Bool = false)
        /// The next server of the connect fails, or has named no other.
        case fail
        /// The next server of the connect accepts.
        case accept
        /// The connected server refers to others after some seconds.
        case end([String], forGood: Bool = false, after: Int64 = 1)
    }

    private static func endpoint(_ name: String) -> Endpoint { Endpoint(host: name, port: 1) }

    /// Follows a story.
    ///
    /// - Returns: The servers that are tried next, or why a chain has ended.
    private static func follow(
        _ story: [Event],
        hosts: [String],
        maximumHops: Int
    ) -> (next: [String], moved: String?) {
        var redirects = ServerRedirects(maximumHops: maximumHops)
        var course = RedirectCourse([], maximumHops: maximumHops)
        var current: ServerCandidate?
        var now = WireInstant.zero
        var text: [String] = []
        func words(_ outcome: RedirectOutcome) -> [String] {
            switch outcome {
            case .followed: []
            case .ignored: ["ignored"]
            case .loop(let chain): ["loop " + chain.map(\.host).joined()]
            case .tooLong(let chain): ["too long " + chain.map(\.host).joined()]
            }
        }
        for event in story {
            text = []
            switch event {
            case .connect(let again):
                course = redirects.begin(hosts.map(endpoint), isReconnection: again)
            case .refer(let servers, let forGood):
                guard let candidate = course.next() else { return (["nothing to try"], nil) }
                _ = redirects.note(
                    servers.map(endpoint),
                    isPermanent: forGood,
                    by: candidate,
                    at: now
                )
                if let outcome = redirects.takeNoted(from: candidate.endpoint) {
                    text = words(course.follow(outcome))
                }
            case .fail: _ = course.next()
            case .accept:
                current = course.next()
                if let current { redirects.accept(current, at: now) }
            case .end(let servers, let forGood, let seconds):
                now = now.advanced(by: .seconds(seconds))
                guard let current else { return (["not connected"], nil) }
                let servers = servers.map(endpoint)
                text = words(
                    redirects.note(servers, isPermanent: forGood, by: current, at: now)
                )
                course = RedirectCourse([], maximumHops: 0)
            }
        }
        var rest = course
        while let candidate = rest.next() { text.append(candidate.endpoint.host) }
        return (text, redirects.moved?.host)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var story: [Event]
        var next: [String]
        var moved: String?
        var hosts = ["A", "B"]
        var maximumHops = 3

        init(
            _ name: String,
            _ story: [Event],
            _ next: [String],
            moved: String? = nil,
            hosts: [String] = ["A", "B"],
            maximumHops: Int = 3
        ) {
            testDescription = name
            self.story = story
            self.next = next
            self.moved = moved
            self.hosts = hosts
            self.maximumHops = maximumHops
        }
    }

    static let rows = [
        Row("the configured hosts", [.connect()], ["A", "B"]),
        Row("each once", [.connect()], ["A"], hosts: ["A", "A"]),
        // Within one connect.
        Row(
            "servers come before other hosts",
            [.connect(), .refer(["X", "Y"])],
            ["X", "Y", "B"]
        ),
        Row("none named", [.connect(), .refer([])], ["ignored", "B"]),
        Row("turned off", [.connect(), .refer(["X"])], ["ignored", "B"], maximumHops: 0),
        Row("the second hop", [.connect(), .refer(["X"]), .refer(["Y"])], ["Y", "B"]),
        Row("to a configured host, which is not tried twice", [.connect(), .refer(["B"])], ["B"]),
        Row("to itself", [.connect(), .refer(["A"])], ["loop AA", "B"]),
        Row("back", [.connect(), .refer(["X"]), .refer(["A"])], ["loop AXA", "B"]),
        Row(
            "back, with another one",
            [.connect(), .refer(["X"]), .refer(["A", "Y"])],
            ["Y", "B"]
        ),
        Row(
            "to a server that another branch has tried",
            [.connect(), .refer(["X", "Y"]), .fail, .refer(["X"])],
            ["loop AYX", "B"]
        ),
        Row(
            "as many hops as allowed",
            [.connect(), .refer(["X"]), .refer(["Y"]), .refer(["Z"])],
            ["Z", "B"]
        ),
        Row(
            "one hop more",
            [.connect(), .refer(["X"]), .refer(["Y"]), .refer(["Z"]), .refer(["W"])],
            ["too long AXYZW", "B"]
        ),
        Row(
            "the hops of all branches count",
            [.connect(), .refer(["X"]), .fail, .refer(["Y"]), .fail],
            [],
        ),
        Row(
            "wide instead of deep",
            [
                .connect(), .refer(["W", "X", "Y", "Z"]), .refer(["1"]), .fail, .refer(["2"]),
                .fail,
                .refer(["3"]),
            ],
            ["too long AY3", "Z", "B"]
        ),
        Row("nothing left", [.connect(), .refer(["X"]), .fail, .fail], []),
        // For a time.
        Row(
            "a substitute is the first after a loss",
            [.connect(), .refer(["X"]), .accept, .connect(again: true)],
            ["X", "B", "A"]
        ),
        Row(
            "not when the app connects anew",
            [.connect(), .refer(["X"]), .accept, .connect()],
            ["A", "B"]
        ),
        Row(
            "nor after a configured host has accepted",
            [
                .connect(), .refer(["X"]), .accept, .connect(again: true), .fail, .accept,
                .connect(again: true),
            ],
            ["B", "A"]
        ),
        Row(
            "it stays through failed attempts",
            [
                .connect(), .refer(["X"]), .accept, .connect(again: true), .fail, .fail, .fail,
                .connect(again: true),
            ],
            ["X", "B", "A"]
        ),
        // For good.
        Row(
            "a move holds for each connect",
            [.connect(), .refer(["X"], forGood: true), .accept, .connect()],
            ["X", "A", "B"],
            moved: "X"
        ),
        Row(
            "and for a reconnection",
            [.connect(), .refer(["X"], forGood: true), .accept, .connect(again: true)],
            ["X", "B", "A"],
            moved: "X"
        ),
        Row(
            "not before the new server accepts",
            [.connect(), .refer(["X"], forGood: true), .fail, .accept, .connect()],
            ["A", "B"]
        ),
        Row(
            "until a configured host accepts",
            [
                .connect(), .refer(["X"], forGood: true), .accept, .connect(), .fail, .accept,
                .connect(),
            ],
            ["A", "B"]
        ),
        Row(
            "it moves again",
            [
                .connect(), .refer(["X"], forGood: true), .accept, .connect(),
                .refer(["Y"], forGood: true), .accept, .connect(),
            ],
            ["Y", "A", "B"],
            moved: "Y"
        ),
        Row(
            "a substitute of the new server",
            [
                .connect(), .refer(["X"], forGood: true), .refer(["Y"]), .accept,
                .connect(again: true),
            ],
            ["Y", "A", "B", "X"],
            moved: "X"
        ),
        Row(
            "a substitute cannot move the service",
            [.connect(), .refer(["X"]), .refer(["Y"], forGood: true), .accept, .connect()],
            ["A", "B"]
        ),
        // At the end of a connection.
        Row(
            "the next connect begins with the named server",
            [.connect(), .accept, .end(["X"]), .connect(again: true)],
            ["X", "B", "A"]
        ),
        Row(
            "without a name the other hosts come first",
            [.connect(), .accept, .end([]), .connect(again: true)],
            ["B", "A"]
        ),
        Row(
            "a move at the end of a connection, until the app connects",
            [
                .connect(), .accept, .end(["X"], forGood: true), .connect(again: true), .accept,
                .connect(),
            ],
            ["X", "A", "B"],
            moved: "X"
        ),
        Row(
            "one that no reconnection has followed is forgotten",
            [.connect(), .accept, .end(["X"]), .connect()],
            ["A", "B"]
        ),
        Row(
            "back at once",
            [.connect(), .accept, .end(["X"]), .connect(again: true), .accept, .end(["A"])],
            ["loop AXA"]
        ),
        Row(
            "after a loop the hosts are tried as configured",
            [
                .connect(), .accept, .end(["X"]), .connect(again: true), .accept, .end(["A"]),
                .connect(again: true),
            ],
            ["A", "B"]
        ),
        Row(
            "back after a minute",
            [
                .connect(), .accept, .end(["X"]), .connect(again: true), .accept,
                .end(["A"], after: 60), .connect(again: true),
            ],
            ["A", "B"]
        ),
        Row(
            "back after a minute is the beginning of another chain",
            [
                .connect(), .accept, .end(["X"]), .connect(again: true), .accept,
                .end(["A"], after: 60),
            ],
            []
        ),
        Row(
            "back after nearly a minute",
            [
                .connect(), .accept, .end(["X"]), .connect(again: true), .accept,
                .end(["A"], after: 59),
            ],
            ["loop AXA"]
        ),
        Row(
            "short connections, one hop too many",
            [
                .connect(), .accept, .end(["X"]), .connect(again: true), .accept, .end(["Y"]),
                .connect(again: true), .accept, .end(["Z"]),
            ],
            ["too long AXYZ"],
            maximumHops: 2
        ),
    ]

    @Test("What is tried next", arguments: rows)
    func table(row: Row) {
        let found = Self.follow(row.story, hosts: row.hosts, maximumHops: row.maximumHops)
        #expect(found.next == row.next)
        #expect(found.moved == row.moved)
    }

    @Test("A server that has referred to others comes last until it accepts, or the app connects")
    func avoided() {
        let hosts = ["A", "B"].map(Self.endpoint)
        func order(_ redirects: inout ServerRedirects, again: Bool) -> [String] {
            var course = redirects.begin(hosts, isReconnection: again)
            var found: [String] = []
            while let next = course.next() { found.append(next.endpoint.host) }
            return found
        }
        for isAccepted in [true, false] {
            var redirects = ServerRedirects(maximumHops: 0)
            let first = ServerCandidate(hosts[0])
            #expect(order(&redirects, again: false) == ["A", "B"])
            redirects.accept(first, at: .zero)
            _ = redirects.note([], isPermanent: false, by: first, at: .zero)
            #expect(order(&redirects, again: true) == ["B", "A"])
            // B is down, so A accepts again.
            if isAccepted { redirects.accept(first, at: .zero) }
            #expect(order(&redirects, again: isAccepted) == ["A", "B"])
        }
    }

    @Test("The reason why a chain ends names it")
    func texts() {
        let chain = ["A", "X", "A"].map(Self.endpoint)
        #expect(
            RedirectOutcome.loop(chain).failure
                == "the servers refer to each other: A:1 → X:1 → A:1"
        )
        #expect(
            RedirectOutcome.tooLong(chain).failure
                == "the servers refer to too many others: A:1 → X:1 → A:1"
        )
        #expect(RedirectOutcome.ignored.failure == nil)
        #expect(RedirectOutcome.followed([]).failure == nil)
    }

    @Test("Any story of many servers ends: a connect tries a bounded number of servers")
    func bounded() {
        var state: UInt64 = 7
        func random(_ count: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % count
        }
        for _ in 0..<2_000 {
            var redirects = ServerRedirects(maximumHops: 5)
            var course = redirects.begin(["A", "B"].map(Self.endpoint), isReconnection: false)
            var count = 0
            while let candidate = course.next() {
                count += 1
                let servers = (0...random(4)).map { _ in Self.endpoint("s\(random(1_000_000))") }
                _ = redirects.note(
                    servers,
                    isPermanent: random(2) == 0,
                    by: candidate,
                    at: .zero
                )
                if let outcome = redirects.takeNoted(from: candidate.endpoint) {
                    _ = course.follow(outcome)
                }
            }
            // Two hosts, and five references of at most four servers.
            #expect(count <= 2 + 5 * 4)
        }
    }
}
