import Testing
import WireCore

@Suite("Memory account") struct MemoryAccountTests {
    @Test("It is full at seven eighths of its limit, until a quarter of that is released")
    func hysteresis() {
        let account = MemoryAccount(limit: 800)
        let changes = Locked([Bool]())
        let observer = account.observe { [weak account] in
            changes.withLock { $0.append(account?.isFull ?? false) }
        }
        account.charge(699)
        #expect(!account.isFull)
        account.charge(1)
        #expect(account.isFull)
        account.release(175)
        #expect(account.isFull)
        account.release(1)
        #expect(!account.isFull)
        #expect(account.byteCount == 524)
        account.stopObserving(observer)
        account.charge(1_000)
        #expect(changes.withLock { $0 } == [true, false])
    }

    @Test("What a policy may drop has three quarters, and alone does not keep the account full")
    func droppable() {
        let account = MemoryAccount(limit: 800)
        #expect(account.chargeIfRoom(600, droppable: 600))
        #expect(!account.chargeIfRoom(1, droppable: 1))
        #expect(!account.hasRoom(forDroppable: 1, beside: 0, of: 0))
        #expect(account.hasRoom(forDroppable: 1, beside: -1, of: -1))
        account.charge(100)
        #expect(account.isFull)
        account.release(50)
        #expect(account.isFull)
        account.release(1)
        #expect(!account.isFull)
        account.release(600, droppable: 600)
        #expect(account.byteCount == 49)
    }

    @Test("The holder that ends is the one with most that no policy may drop")
    func largest() {
        let account = MemoryAccount(limit: 800)
        let ended = Locked([String]())
        let rows = [
            ("a", 10, 900, true), ("b", 30, 0, false), ("c", 20, 0, true), ("d", 5, 0, true),
        ]
        for (topic, firm, droppable, holdsBack) in rows {
            let holder = MemoryAccount.Holder(topic: topic) {
                var waiting = MemoryAccount.Waiting()
                (waiting.firm, waiting.droppable) = (firm, droppable)
                waiting.holdsBack = holdsBack
                return waiting
            } drop: { _ in
            } end: {
                ended.withLock { $0.append(topic) }
            }
            _ = account.add(holder)
        }
        let all = account.largestHolder(holdsBack: false)
        #expect(all?.topic == "b" && all?.byteCount == 30)
        let holding = account.largestHolder(holdsBack: true)
        #expect(holding?.topic == "c" && holding?.byteCount == 20)
        account.endLargestHolder(holdsBack: false)
        account.endLargestHolder(holdsBack: true)
        #expect(ended.withLock { $0 } == ["b", "c"])
    }

    @Test("Observers are called in the order in which they came")
    func order() {
        let account = MemoryAccount(limit: 800)
        let called = Locked([Int]())
        for number in 0..<100 {
            _ = account.observe { called.withLock { $0.append(number) } }
        }
        account.charge(800)
        #expect(called.withLock { $0 } == Array(0..<100))
    }

    @Test("What has no room is not charged, and what has room does not fill it")
    func room() {
        let account = MemoryAccount(limit: 800)
        #expect(account.chargeIfRoom(699))
        #expect(!account.chargeIfRoom(1))
        #expect(!account.hasRoom(for: 1))
        #expect(!account.isFull)
        #expect(account.byteCount == 699)
    }
}
