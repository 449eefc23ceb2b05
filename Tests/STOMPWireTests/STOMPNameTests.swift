import STOMPWire
import Testing
import WireTestSupport

@Suite("STOMP names as bytes") struct STOMPNameTests {
    @Test("Ids that look alike are two subscriptions", arguments: LookalikeNames.all)
    func subscriptions(names: LookalikeNames) {
        var subscriptions = STOMPSubscriptions()
        for (id, destination) in [(names.one, "1"), (names.other, "2")] {
            subscriptions.add(.init(id: id, destination: destination, ackMode: .auto))
        }
        #expect(subscriptions.ids.count == 2)
        #expect(subscriptions[names.one]?.destination == "1")
        #expect(subscriptions[names.other]?.destination == "2")
        subscriptions.remove(names.one)
        #expect(subscriptions[names.one] == nil)
        #expect(subscriptions[names.other]?.destination == "2")
    }

    @Test("Headers that look alike are two headers", arguments: LookalikeNames.all)
    func headers(names: LookalikeNames) {
        let headers: STOMPHeaders = [names.one: "1", names.other: "2"]
        #expect(headers.first(names.other) == "2")
        #expect(headers.all(names.one) == ["1"])
        #expect(STOMPHeaders.Field(names.one, "") != STOMPHeaders.Field(names.other, ""))
    }
}
