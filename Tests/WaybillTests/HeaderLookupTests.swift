import Testing
import Waybill

/// Header names are compared by the rules of the protocol.
@Suite("Lookup of headers") struct HeaderLookupTests {
    @Test("By bytes unless told otherwise; the first value counts")
    func exact() {
        let headers: Headers = ["Name": "1", "name": "2", "Name": "3"]
        #expect(headers.first("Name") == "1" && headers["name"] == "2" && headers["NAME"] == nil)
        #expect(headers.all("Name") == ["1", "3"])
    }

    @Test("Without regard to case where the protocol says so")
    func ignoringCase() {
        var headers: Headers = ["Content-Type": "a", "X": "1", "x": "2"]
        headers.lookup = .ignoringCase
        #expect(headers["content-type"] == "a" && headers["CONTENT-TYPE"] == "a")
        #expect(headers.first("x") == "1" && headers.all("X") == ["1", "2"])
        headers["x"] = "3"
        #expect(headers.map(\.value) == ["a", "3"])
        headers.removeAll(named: "CONTENT-type")
        #expect(headers.count == 1)
        // HTTP ignores case only for ASCII letters.
        var foreign: Headers = ["Ä": "1"]
        foreign.lookup = .ignoringCase
        #expect(foreign["ä"] == nil)
    }

    @Test("How names are found makes no difference to whether headers are the same")
    func equality() {
        let exact: Headers = ["a": "1"]
        var other = exact
        other.lookup = .ignoringCase
        #expect(exact == other && exact.hashValue == other.hashValue)
        #expect(exact != ["A": "1"])
    }
}
