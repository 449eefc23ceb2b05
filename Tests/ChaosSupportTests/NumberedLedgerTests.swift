import ChaosSupport
import Testing

@Suite("Numbered messages are counted") struct NumberedLedgerTests {
    @Test("What is lost, comes twice, out of order or from nowhere is told apart")
    func verdicts() {
        let ledger = NumberedLedger(count: 8)
        for number in 0..<7 { ledger.began(number) }
        for number in 0..<5 { ledger.succeeded(number) }
        ledger.failed(5)
        for number in [0, 2, 1, 1, 1, 5, 3, nil, 99, 7] { ledger.arrived(number) }
        let verdict = ledger.verdict
        #expect(verdict.calls == 7)
        #expect(verdict.successes == 5)
        #expect(verdict.failures == 1)
        #expect(verdict.unresolved == 1)
        #expect(verdict.resolvedTwice == 0)
        #expect(verdict.arrived == 5)
        #expect(verdict.lost == 1)
        #expect(verdict.twice == 1)
        #expect(verdict.repeats == 2)
        #expect(verdict.outOfOrder == 2)
        #expect(verdict.unknown == 3)
    }

    @Test("A call that ends twice is seen; a number may be sent again")
    func resolvedTwice() {
        let ledger = NumberedLedger(count: 2)
        ledger.began(0)
        ledger.failed(0)
        ledger.began(0)
        ledger.succeeded(0)
        #expect(ledger.verdict.resolvedTwice == 0)
        ledger.failed(0)
        ledger.succeeded(1)
        #expect(ledger.verdict.resolvedTwice == 2)
        #expect(ledger.verdict.lost == 1)
        #expect(ledger.verdict.failures == 1)
    }

    @Test("Each sender has an order of its own")
    func lanes() {
        let ledger = NumberedLedger(count: 6, lanes: 2)
        for number in 0..<6 { ledger.began(number) }
        for number in [4, 1, 3, 5, 0, 2] { ledger.arrived(number) }
        #expect(ledger.verdict.outOfOrder == 2)
        #expect(ledger.verdict.arrived == 6)
    }
}
