import Foundation
import Testing

/// Rules that the compiler does not check: the imports between the layers, and the rules for source files.
@Suite("Architecture") struct ArchitectureTests {
    /// The root of the repository, found from the path of this file.
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private struct File: Sendable {
        let path: String
        let lines: [String]

        /// The name of the folder directly in `Sources`.
        var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
    }

    /// The names of all files and folders in a folder; an empty folder would hide every broken rule.
    private static func names(in folder: String) throws -> [String] {
        let base = root.appendingPathComponent(folder)
        let names = try #require(FileManager.default.enumerator(atPath: base.path), "\(folder)")
        let found = names.compactMap { $0 as? String }
        try #require(!found.isEmpty, "no files in \(folder)")
        return found
    }

    private static func files(in folder: String, ending: String = ".swift") throws -> [File] {
        let base = root.appendingPathComponent(folder)
        let found = try names(in: folder).filter { $0.hasSuffix(ending) }.sorted()
        try #require(!found.isEmpty, "no files \(ending) in \(folder)")
        return
            try found
            .map { name in
                let url = base.appendingPathComponent(name)
                let text = try String(contentsOf: url, encoding: .utf8)
                let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
                return File(path: "\(folder)/\(name)", lines: lines.map(String.init))
            }
    }

    /// The modules of the package that each target may import. Imports go inwards only, and never to a sibling.
    private static let rings: [String: Set<String>] = [
        "WireCore": [],
        "MQTTWire": ["WireCore"],
        "HTTPWire": ["WireCore", "CWaybillZlib"],
        "EventStreamWire": ["HTTPWire", "WireCore"],
        "WebSocketWire": ["HTTPWire", "WireCore", "CWaybillZlib"],
        "CWaybillZlib": [],
        "STOMPWire": ["WireCore"],
        "SCRAMWire": ["WireCore"],
        "CWaybillLinux": [],
        "CWaybillTLS": [],
        "WaybillLink": [
            "WireCore", "HTTPWire", "WebSocketWire", "SCRAMWire", "CWaybillLinux", "CWaybillTLS",
        ],
        "Waybill": ["WireCore"],
        "WaybillSession": ["Waybill", "WaybillLink", "WebSocketWire", "HTTPWire", "WireCore"],
        "WaybillWebSocket": [
            "Waybill", "WaybillSession", "WaybillLink", "WebSocketWire", "HTTPWire", "WireCore",
        ],
        "WaybillMQTT": [
            "Waybill", "WaybillSession", "WaybillLink", "MQTTWire", "SCRAMWire", "WireCore",
        ],
        "WaybillSSE": [
            "Waybill", "WaybillSession", "WaybillLink", "EventStreamWire", "HTTPWire", "WireCore",
        ],
        "WaybillSTOMP": ["Waybill", "WaybillSession", "WaybillLink", "STOMPWire", "WireCore"],
        "WaybillSQLite": ["Waybill", "WireCore", "CWaybillSQLite"],
        "CWaybillSQLite": [],
        "WaybillRecording": ["Waybill", "MQTTWire", "WireCore"],
        "WaybillMock": ["Waybill", "WaybillSession", "WaybillLink", "WireCore"],
        "WaybillTesting": [
            "Waybill", "WaybillMock", "WaybillMQTT", "WaybillSTOMP", "WaybillSSE",
            "WaybillWebSocket",
            "WaybillSession", "WaybillLink", "WebSocketWire", "HTTPWire", "EventStreamWire",
            "MQTTWire", "STOMPWire", "SCRAMWire", "WireCore", "CWaybillSimulation",
        ],
        "CWaybillSimulation": [],
    ]

    /// The system modules that each target may import. Only the link uses the system's network.
    private static let systemModules: [String: Set<String>] = [
        "WireCore": ["Synchronization", "os", "Glibc", "Musl"],
        "MQTTWire": [],
        "STOMPWire": [],
        "SCRAMWire": [],
        "WaybillLink": [
            "Glibc", "Musl", "Darwin",
            // Only on Apple platforms.
            "CommonCrypto", "CoreFoundation", "CryptoKit", "Dispatch", "Network", "Security",
            "FoundationEssentials", "Foundation",
        ],
        // For loggers: standard error, and the log of Apple platforms.
        "Waybill": [
            "FoundationEssentials", "Foundation", "Combine", "Glibc", "Musl", "Darwin", "os",
            // For handlers on a queue that the caller chooses.
            "Dispatch",
            // For an evaluation of the server's trust by the app.
            "Security",
        ],
        "WaybillSession": ["FoundationEssentials", "Foundation", "Dispatch"],
        "WaybillWebSocket": ["FoundationEssentials", "Foundation"],
        "WaybillSTOMP": ["FoundationEssentials", "Foundation"],
        // For listeners on a queue that the caller chooses.
        "WaybillSSE": ["FoundationEssentials", "Foundation", "Dispatch"],
        "EventStreamWire": [],
        "HTTPWire": [],
        "WebSocketWire": [],
        // For a store that blocks its thread.
        "WaybillMQTT": ["FoundationEssentials", "Foundation"],
        // For the queue that writes.
        "WaybillSQLite": ["FoundationEssentials", "Foundation", "Dispatch"],
        // For the queue that writes, and for files.
        "WaybillRecording": ["Dispatch", "Glibc", "Musl", "Darwin"],
        "WaybillMock": [],
        // For the simulation: threads and logarithms.
        "WaybillTesting": ["FoundationEssentials", "Foundation", "Glibc", "Musl", "Darwin"],
    ]

    private static func imports(of file: File) -> [String] {
        file.lines.compactMap { line in
            let words = line.split(separator: " ")
            guard words.first?.hasPrefix("//") != true else { return nil }
            guard let index = words.firstIndex(of: "import"),
                index <= 1 || words.first == "@_exported", words.count > index + 1
            else { return nil }
            return String(words[index + 1])
        }
    }

    @Test("Every import follows the rings")
    func importGraph() throws {
        let files = try Self.files(in: "Sources")
        // A target in C has no file in Swift.
        #expect(Set(files.map(\.target)) == Set(Self.rings.keys.filter { !$0.hasPrefix("C") }))
        var used: Set<String> = []
        for file in files {
            let allowed = try #require(Self.rings[file.target])
                .union(Self.systemModules[file.target] ?? [])
            for module in Self.imports(of: file) {
                #expect(allowed.contains(module), "\(file.path) imports \(module)")
                used.insert(module)
            }
        }
        // Each ring is imported by the next one, so that a form of import that is not found shows.
        let products: Set = [
            "WaybillWebSocket", "WaybillSQLite", "WaybillRecording", "WaybillTesting",
        ]
        #expect(Set(Self.rings.keys).subtracting(products).subtracting(used) == [])
    }

    @Test("Foundation stands only where FoundationEssentials cannot be imported")
    func foundation() throws {
        var count = 0
        for file in try Self.files(in: "Sources") {
            for (number, line) in file.lines.enumerated()
            where line.hasSuffix("import Foundation") {
                count += 1
                let before = file.lines[..<number].suffix(3)
                #expect(
                    before.contains { $0.contains("import FoundationEssentials") },
                    "\(file.path)"
                )
            }
        }
        #expect(count > 0)
    }

    @Test("The manifest names no package, and the top level holds nothing else")
    func topLevel() throws {
        let manifest = Self.root.appendingPathComponent("Package.swift")
        #expect(!(try String(contentsOf: manifest, encoding: .utf8)).contains(".package("))
        let allowed: Set = [
            "Package.swift", "Sources", "Tests", "Examples", "Documentation", "README.md",
        ]
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.root.path)
        #expect(allowed.isSubset(of: names))
        for name in names where !name.hasPrefix(".") {
            // Package.resolved is written by a build.
            #expect(allowed.contains(name) || name == "Package.resolved", "\(name)")
        }
    }

    @Test("No trap, no forced anything, no leftover in the sources")
    func forbiddenWords() throws {
        let forbidden = [
            "fatalError(", "preconditionFailure(", "precondition(", "assert(", "try!", " as! ",
            "TODO", "FIXME", "XXX", "nonisolated(unsafe)", "Task.detached", "DispatchSemaphore",
        ]
        // A listener knows its port when it is made, and Network.framework tells it later.
        func isAllowed(_ word: String, in file: File) -> Bool {
            word == "DispatchSemaphore" && file.path.hasSuffix("/FrameworkListener+Apple.swift")
        }
        for file in try Self.files(in: "Sources") {
            for line in file.lines {
                for word in forbidden where !isAllowed(word, in: file) {
                    #expect(!line.contains(word), "\(file.path): \(line)")
                }
            }
        }
    }

    /// The places that compare text as characters on purpose: the file, and a part of the line.
    private static let comparedAsCharacters = [
        // Names that the test writes. The broker compares their bytes.
        ("LoopbackFaults.swift", "refusesSubscriptions: Set<String>"),
        ("LoopbackFaults.swift", "endsConnectionsAt: Set<String>"),
        ("LoopbackBroker.swift", "credentials: [String: String]"),
        ("LoopbackBroker.swift", "Redacted<[String: String]>"),
        ("LoopbackBroker.swift", "relays: [String: String]"),
        // Hosts and sizes that a simulation's own test has named.
        ("SimulatedNetwork.swift", "hosts: [String: Host]"),
        ("SimulatedWorld.swift", "sizes: [String: Int]"),
        ("SimulationReduction.swift", "sizes: [String: Int]"),
        ("SimulationRun.swift", "sizes: [String: Int]"),
        // Event types that the app names. The stream compares their bytes.
        ("SSEOptions.swift", "OptionKey<Set<String>>"), ("SSEOptions.swift", "types: Set<String>"),
        ("SSEStream.swift", "eventTypes: Set<String>?"),
        // The comparison of their bytes.
        ("OptionKey.swift", "value as? Set<String>"),
        // Words in the error texts of a server.
        ("STOMPMapping.swift", ".lowercased()"), ("STOMPMapping.swift", "text(of: frame).contains"),
    ]

    @Test("Names are compared by their bytes: no String as a key, none cut or folded as characters")
    func namesAreBytes() throws {
        let characterwise = [
            "[String: ", "Set<String>", "Dictionary<String", ".lowercased()", ".uppercased()",
            ".hasPrefix(", ".hasSuffix(", "split(separator: \"", "ndex(of: \"", ".contains(\"",
        ]
        var unused = Self.comparedAsCharacters.map { $0.0 + ": " + $0.1 }
        for file in try Self.files(in: "Sources") where !file.path.contains("/Apple/") {
            for line in file.lines {
                let code = line.trimmingCharacters(in: .whitespaces)
                guard !code.hasPrefix("//"), characterwise.contains(where: code.contains),
                    !code.contains("member: \"")
                else { continue }
                let purposes = Self.comparedAsCharacters.filter { name, part in
                    file.path.hasSuffix("/" + name) && code.contains(part)
                }.map { $0.0 + ": " + $0.1 }
                #expect(!purposes.isEmpty, "\(file.path): \(line)")
                unused.removeAll { purposes.contains($0) }
            }
        }
        #expect(unused == [], "exceptions without a place")
    }

    @Test("No test waits for ever: `waitUntil` ends with the test's time")
    func waiting() throws {
        for file in try Self.files(in: "Tests") + Self.files(in: "Examples") {
            for (line, next) in zip(file.lines, file.lines.dropFirst()) {
                #expect(
                    !line.contains(".timeLimit(") || line.contains(".timeLimit(.minutes(30))"),
                    "on a busy machine a test takes long: \(file.path): \(line)"
                )
                let loop = line.trimmingCharacters(in: .whitespaces)
                let isEmptyLoop = next.trimmingCharacters(in: .whitespaces) == "await Task.yield()"
                #expect(
                    !loop.hasPrefix("while ")
                        || !(loop.hasSuffix("{ await Task.yield() }") || isEmptyLoop),
                    "\(file.path): \(line)"
                )
            }
        }
    }

    @Test("Each test that needs the real clock has `RealTime` in its name, by which it is found")
    func realTime() throws {
        var count = 0
        let files = try Self.files(in: "Tests").filter { file in
            !file.path.contains("TestSupport/") && !file.path.contains("ArchitectureTests/")
        }
        for file in files {
            for (number, line) in file.lines.enumerated() where line.contains(".realTime") {
                count += 1
                let declaration = file.lines[number...].prefix(12).first { line in
                    line.contains("func ") || line.contains("struct ")
                }
                #expect(
                    declaration.map { $0.contains("RealTime") || $0.contains("realTime") } == true,
                    "\(file.path):\(number + 1)"
                )
            }
        }
        #expect(count >= 7)
    }

    @Test("Each @unchecked Sendable has its proof in the comment before it")
    func unchecked() throws {
        var count = 0
        for file in try Self.files(in: "Sources") {
            for (number, line) in file.lines.enumerated()
            where line.contains("@unchecked Sendable") && !line.contains("///") {
                count += 1
                let comment = file.lines[..<number].suffix(12)
                #expect(
                    comment.contains { $0.contains("`@unchecked Sendable`, because") },
                    "\(file.path)"
                )
            }
        }
        #expect(count > 0)
    }

    @Test("Files stay readable: 500 lines in the sources, 600 in the tests")
    func sizes() throws {
        for (folder, limit) in [("Sources", 500), ("Tests", 600), ("Examples", 500)] {
            for file in try Self.files(in: folder) {
                #expect(file.lines.count <= limit, "\(file.path)")
            }
        }
    }

    @Test("Names of files and folders say what is in them")
    func names() throws {
        let vague = ["Utils", "Helpers", "Common", "Manager"]
        for folder in ["Sources", "Tests", "Examples", "Documentation"] {
            for name in try Self.names(in: folder) {
                #expect(!name.contains(" "), "\(folder)/\(name)")
                for word in vague { #expect(!name.contains(word), "\(folder)/\(name)") }
            }
        }
    }

    @Test("Every test that the ledgers name exists")
    func ledgers() throws {
        let tests =
            try Self.files(in: "Tests") + Self.files(in: "Examples") + Self.files(in: "Sources")
        let known = Set(tests.map { String($0.path.split(separator: "/").last ?? "") })
        var count = 0
        for document in try Self.files(in: "Documentation", ending: ".md") {
            for line in document.lines {
                for match in line.matches(of: /`(\w+\.swift)(?: (\w+))?`/) {
                    let (_, file, function) = match.output
                    count += 1
                    #expect(known.contains(String(file)), "\(document.path) names \(file)")
                    guard let function else { continue }
                    let isThere = tests.contains { test in
                        test.path.hasSuffix("/\(file)")
                            && test.lines.contains { $0.contains("func \(function)(") }
                    }
                    #expect(isThere, "\(document.path) names \(file) \(function)")
                }
            }
        }
        #expect(count > 1_000)
    }
}
