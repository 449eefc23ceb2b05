import Testing
import WaybillSSE

/// The order in which requests get connections.
@Suite("Places for connections to a host") struct PlaceTests {
    private typealias Places = HTTPPlaces<String, Int, String>

    /// An answer as a word.
    private func word(_ answer: Places.Answer) -> String {
        switch answer {
        case .granted(let connection): word(connection)
        case .waits(let number): "waits as \(number)"
        }
    }

    /// An answer as words, with the connections that are dropped.
    private func word(_ heard: (answer: Places.Answer, dropped: [Int])) -> String {
        word(heard.answer) + heard.dropped.map { ", dropping \($0)" }.joined()
    }

    private func word(_ connection: Int?) -> String {
        connection.map { "kept \($0)" } ?? "place"
    }

    private func word(_ woken: Places.Woken?) -> String {
        woken.map { "\($0.waiter): " + word($0.connection) } ?? "nothing"
    }

    @Test("A host has so many connections; those behind wait in the order of arrival")
    func order() {
        var places = Places(limit: 2) { _ in true }
        #expect(word(places.request("a", for: "") { _ in true }) == "place")
        #expect(word(places.request("a", for: "") { _ in true }) == "place")
        for number in 1...3 {
            let answer = places.request("a", for: "no. \(number)") { _ in true }
            #expect(word(answer) == "waits as \(number)")
        }
        // Another host has places of its own.
        #expect(word(places.request("b", for: "") { _ in true }) == "place")
        #expect(word(places.giveBack("a", 7).woken) == "no. 1: kept 7")
        #expect(word(places.free("a")) == "no. 2: place")
        #expect(places.count(of: "a") == 2 && places.waitingCount(of: "a") == 1)
        // A new request waits behind an earlier one.
        #expect(word(places.request("a", for: "no. 4") { _ in true }) == "waits as 4")
        #expect(word(places.giveBack("a", 7).woken) == "no. 3: kept 7")
        #expect(word(places.giveBack("a", 8).woken) == "no. 4: kept 8")
        #expect(word(places.giveBack("a", 7).woken) == "nothing")
        #expect(word(places.request("a", for: "") { _ in true }) == "kept 7")
    }

    @Test("One that waits no longer takes no place; one that was given something waits no longer")
    func withdrawn() {
        var places = Places(limit: 1) { _ in true }
        #expect(word(places.request("a", for: "") { _ in true }) == "place")
        for number in 1...4 { _ = places.request("a", for: "no. \(number)") { _ in true } }
        #expect(places.withdraw(1, "a") && !places.withdraw(1, "a"))
        #expect(word(places.free("a")) == "no. 2: place")
        #expect(places.withdraw(2, "a") == false)
        #expect(word(places.free("a")) == "no. 3: place")
        #expect(places.takeWaiting() == ["no. 4"] && places.waitingCount(of: "a") == 0)
        #expect(word(places.free("a")) == "nothing" && places.count(of: "a") == 0)
    }

    @Test(
        "An idle connection that is over gives its place up; one to another host of the service gives way"
    )
    func idle() {
        var places = Places(limit: 1) { $0 != 9 }
        _ = places.request("a", for: "") { _ in true }
        #expect(word(places.giveBack("a", 9).woken) == "nothing")
        #expect(word(places.request("a", for: "") { _ in true }) == "place, dropping 9")
        _ = places.giveBack("a", 1)
        #expect(word(places.request("a", for: "") { $0 == 2 }) == "place, dropping 1")
        // The same when a connection is handed over.
        #expect(word(places.request("a", for: "no. 1") { $0 == 3 }) == "waits as 1")
        let (woken, surplus) = places.giveBack("a", 2)
        #expect(word(woken) == "no. 1: place" && surplus == 2)
        #expect(places.count(of: "a") == 1)
    }

    @Test("Idle connections to one host are taken as they are doubted, with their places")
    func doubtful() {
        var places = Places(limit: 3) { _ in true }
        for (host, connection) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
            _ = places.request(host, for: "") { _ in false }
            _ = places.giveBack(host, connection)
        }
        #expect(places.takeIdle("a") { $0 != 3 } == [1, 4])
        #expect(places.count(of: "a") == 1 && places.count(of: "b") == 1)
        #expect(word(places.request("a", for: "") { _ in true }) == "kept 3")
    }

    @Test("Idle connections to many hosts are few")
    func many() {
        var places = Places(limit: 6) { _ in true }
        var closed: [Int] = []
        for host in 0..<20 {
            _ = places.request("\(host)", for: "") { _ in true }
            if let surplus = places.giveBack("\(host)", host).surplus { closed.append(surplus) }
        }
        #expect(closed == Array(0..<14))
        #expect(places.takeIdle() == Array(14..<20))
        #expect((0..<20).allSatisfy { places.count(of: "\($0)") == 0 })
    }
}
