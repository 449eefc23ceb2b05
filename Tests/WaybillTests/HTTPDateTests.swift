import Testing
import Waybill

@Suite("HTTP dates") struct HTTPDateTests {
    @Test(
        "All three forms (RFC 9110, 5.6.7)",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ]
    )
    func forms(text: String, seconds: Int) {
        #expect(HTTPDate(text)?.seconds == seconds)
    }

    @Test("Two digits of a year are of the century that is at most 50 years ahead")
    func century() {
        let text = "Friday, 01-Jan-60 00:00:00 GMT"
        #expect(HTTPDate(text, currentYear: 2026)?.seconds == 2_840_140_800)
        #expect(HTTPDate(text, currentYear: 1999)?.seconds == -315_619_200)
    }

    @Test(
        "Anything else is none",
        arguments: [
            "", "7", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 194 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT",
        ]
    )
    func refused(text: String) {
        #expect(HTTPDate(text) == nil)
    }
}
