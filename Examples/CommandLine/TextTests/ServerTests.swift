import CommandText
import Testing

@Suite("Servers of arguments and of the file")
struct ServerTests {
    @Test("The parts of a URL")
    func parts() throws {
        let address = try ServerAddress("MQTTS://ada:secret@Broker.example:1234/x?token=y")
        #expect(address.scheme == "mqtts")
        #expect(address.host == "Broker.example")
        #expect(address.port == 1_234)
        #expect(address.path == "/x?token=y")
        #expect(address.userName == "ada")
        #expect(address.hasPassword)
        #expect(address.family == .mqtt)
        #expect(address.isSecure)
        // Neither the password nor the query is ever shown.
        #expect(address.shown == "mqtts://Broker.example:1234/x")
    }

    @Test(
        "No secret of a URL is shown",
        arguments: [
            ("http://user:9/s3cret@h", "http://user:9/…"), ("http://h/a#s3cret", "http://h/a"),
            ("mqtt://h#s3cret", "mqtt://h"), ("mqtt://u:s3cret@h?s3cret", "mqtt://h"),
            ("http://h/@ada/feed", "http://h/@ada/feed"),
        ]
    )
    func shownAddress(url: String, shown: String) throws {
        #expect(try ServerAddress(url).shown == shown)
    }

    @Test(
        "A wrong URL is not repeated",
        arguments: [
            "user:s3cret@127.0.0.1", "user:s3cret@://h", "mqtt://user:9/s3cret@h",
            "mqtt://user:s3cret/x@h", "mqtt://user:s3cret@", "mqtt://user:s3cret@h:x",
        ]
    )
    func repeatedSecret(url: String) throws {
        let error = try #require(throws: TextError.self) { try ServerAddress(url) }
        #expect(!error.description.contains("s3cret"))
    }

    @Test("An IPv6 address has colons of its own")
    func addressWithColons() throws {
        let address = try ServerAddress("stomp://[::1]")
        #expect(address.host == "[::1]")
        #expect(address.port == 61_613)
        #expect(try ServerAddress("stomp://[::1]:99").port == 99)
    }

    @Test("A WebSocket names no protocol")
    func webSocket() throws {
        #expect(try ServerAddress("wss://a/ws").family == nil)
        #expect(try ServerAddress("http://a").family == .events)
    }

    @Test(
        "A wrong URL is refused with what to do",
        arguments: ["", "broker", "ftp://a", "mqtt://", "mqtt://a:0", "mqtt://a:x", "mqtt:///t"]
    )
    func wrong(url: String) {
        #expect(throws: TextError.self) { try ServerAddress(url) }
    }

    @Test("A file of servers")
    func file() throws {
        let file = try ServersFile(
            """
            # Comment
            [home]
            url = mqtt://127.0.0.1
            header = a: 1
            header = b: x = y

            [ work ]
              username=ada
            """
        )
        let home = try file.server(named: "home")
        #expect(home["url"] == "mqtt://127.0.0.1")
        #expect(home.all("header") == ["a: 1", "b: x = y"])
        #expect(try file.server(named: "work")["username"] == "ada")
        #expect(throws: TextError("there is no server [x]; there is home, work")) {
            try file.server(named: "x")
        }
    }

    @Test(
        "A wrong file is refused with the number of the line",
        arguments: [
            ("[a]\nurl", "line 2"), ("url = x", "line 1"), ("[a\n", "line 1"), ("[]", "line 1"),
            ("[a]\n\nuser = x", "line 3"),
        ]
    )
    func wrongFile(text: String, place: String) throws {
        let error = #expect(throws: TextError.self) { try ServersFile(text) }
        #expect(error?.description.hasPrefix(place) == true)
    }
}
