import Testing
import Waybill
import WaybillLink
import WaybillSession

@Suite("TLS options") struct TLSOptionsTests {
    @Test(
        "They become the link's settings; without a word of the app the protocols are the transport's"
    )
    func mapped() throws {
        var options = TLSOptions()
        options.authorities = [.file("ca.pem"), .bytes([1, 2])]
        options.identity = .certificate(.file("c.pem"), key: .bytes([3]), password: "secret")
        options.pinnedPublicKeys = [[UInt8](repeating: 7, count: 32)]
        options.serverName = "other.example"
        options.minimumVersion = .v1_3
        let settings = try TLSSettings(options, protocols: ["http/1.1"])
        #expect(settings.authorities == [.file("ca.pem"), .bytes([1, 2])])
        #expect(
            settings.identity
                == .certificate(.file("c.pem"), key: .bytes([3]), password: "secret")
        )
        #expect(settings.pinnedPublicKeys == options.pinnedPublicKeys)
        #expect(settings.serverName == "other.example")
        #expect(settings.applicationProtocols == ["http/1.1"])
        #expect(settings.minimumVersion == .v1_3)
        #expect(!settings.acceptsAnyCertificate)
        options.applicationProtocols = []
        #expect(try TLSSettings(options, protocols: ["http/1.1"]).applicationProtocols.isEmpty)
    }

    @Test("Pins and protocols that cannot be are refused")
    func refused() {
        var options = TLSOptions()
        options.pinnedPublicKeys = [[1, 2, 3]]
        #expect(throws: WaybillError.self) { try TLSSettings(options, protocols: []) }
        for name in ["", String(repeating: "x", count: 256)] {
            var options = TLSOptions()
            options.applicationProtocols = [name]
            let error = #expect(throws: WaybillError.self) {
                try TLSSettings(options, protocols: [])
            }
            #expect(error?.code == .invalidEntry)
        }
    }

    @Test("Neither keys nor passwords are printed")
    func secrets() {
        var options = TLSOptions()
        options.identity = .certificate(
            .file("c.pem"),
            key: .bytes([222, 173, 190]),
            password: "secret"
        )
        #expect(!"\(options)".contains("secret"))
        #expect(!"\(options)".contains("222"))
        options.identity = .pkcs12(.file("c.p12"), password: "secret")
        #expect(!"\(options)".contains("secret"))
        #expect("\(options)".contains("c.p12"))
        options.identity = .keychain(label: "meter")
        #expect("\(options)".contains("meter in the keychain"))
    }

    @Test("An evaluation of the app's own reaches the link, and is equal to itself alone")
    func evaluation() throws {
        var options = TLSOptions()
        options.ownEvaluation = { _, host in host == "example.com" }
        options.identity = .keychain(label: "meter")
        let settings = try TLSSettings(options, protocols: [])
        let evaluation = try #require(settings.evaluation)
        #expect(evaluation.accepts(evaluation, "example.com"))
        #expect(!evaluation.accepts(evaluation, "example.org"))
        #expect(settings == settings)
        #expect(try settings != TLSSettings(options, protocols: []))
        #expect(settings.identity == .keychain(label: "meter"))
    }
}
