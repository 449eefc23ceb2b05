import Foundation
import Testing
import WaybillSQLite

/// What a device of Apple asks of a file. The rules need no such device.
@Suite("Files on Apple's devices", .timeLimit(.minutes(30))) struct AppleFileTests {
    @Test(
        "A store in the container of an app group is refused with the reason, and no file is made"
    )
    func appGroup() throws {
        let temporary = try TemporaryStore()
        let group = temporary.folder.appendingPathComponent("Containers/Shared/AppGroup/1234")
        try FileManager.default.createDirectory(at: group, withIntermediateDirectories: true)
        let path = group.appendingPathComponent("store.sqlite").path
        let error = #expect(throws: SQLiteStoreError.self) { try SQLiteSessionStore(path: path) }
        #expect(error?.reason == .cannotOpen)
        #expect(error?.detail.contains("0xdead10cc") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(
        "The containers of app groups, on devices and in simulators, and no others",
        arguments: [
            ("/private/var/mobile/Containers/Shared/AppGroup/1234/store.sqlite", true),
            (
                "/Users/a/Library/Developer/CoreSimulator/Devices/1/data/Containers/Shared/AppGroup/2/s",
                true
            ),
            ("/var/mobile/Containers/Data/Application/1234/Library/store.sqlite", false),
            ("/Users/a/Library/Group Containers/group.com.example/store.sqlite", false),
            ("/Containers/Shared/AppGroups/store.sqlite", false), ("store.sqlite", false),
            ("", false),
        ]
    )
    func containers(path: String, isShared: Bool) {
        #expect(SQLiteStoreError.isInAppGroup(path) == isShared)
    }

    @Test("Opened on another thread, a store is the same, and so is its error")
    func openedElsewhere() async throws {
        let temporary = try TemporaryStore()
        let url = URL(fileURLWithPath: temporary.path)
        let store = try await SQLiteSessionStore.open(url)
        #expect(try store.insert(TemporaryStore.message(1)) == 1)
        await #expect(throws: SQLiteStoreError.self) { try await SQLiteSessionStore.open(url) }
        store.close()
        let again = try await SQLiteSessionStore.open(url)
        #expect(try again.messages().numbers == [1])
        again.close()
    }

    @Test("The privacy manifest names the one API that the target uses, with the reason for it")
    func privacyManifest() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let target = root.appendingPathComponent("Sources/CWaybillSQLite")
        let manifest = try String(
            contentsOf: target.appendingPathComponent("PrivacyInfo.xcprivacy"),
            encoding: .utf8
        )
        let values = manifest.components(separatedBy: "<string>").dropFirst().map {
            $0.components(separatedBy: "</string>")[0]
        }
        #expect(values == ["NSPrivacyAccessedAPICategoryFileTimestamp", "C617.1"])
        let package = try String(
            contentsOf: root.appendingPathComponent("Package.swift"),
            encoding: .utf8
        )
        let resource = "resources: [.copy(\"PrivacyInfo.xcprivacy\")]"
        #expect(
            package.components(separatedBy: "name: \"CWaybillSQLite\"").dropFirst()
                .contains { $0.components(separatedBy: "name: ")[0].contains(resource) }
        )
        // Functions of the other categories, which would need reasons of their own.
        let others = [
            "statfs", "statvfs", "fstatfs", "getattrlist", "mach_absolute_time", "systemUptime",
            "UserDefaults", "volumeAvailableCapacity", "activeInputModes", "systemFreeSize",
        ]
        let sources = root.appendingPathComponent("Sources")
        let files = FileManager.default.enumerator(atPath: sources.path)?
            .compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".c") }
        for file in files ?? [] {
            let text = try String(
                contentsOf: sources.appendingPathComponent(file),
                encoding: .utf8
            )
            for name in others { #expect(!text.contains(name), "\(file): \(name)") }
            let callsStat = text.contains(" stat(") || text.contains("&stat(")
            #expect(!callsStat || file.hasPrefix("CWaybillSQLite/"), "\(file)")
        }
    }

    @Test(
        "Denied access has words about a phone before its first unlock, and other errors have not"
    )
    func denied() {
        for (code, reason) in [
            (3, SQLiteStoreError.Reason.cannotOpen), (23, .cannotOpen), (10, .diskFailed),
            (5, .inUse),
        ] {
            let error = SQLiteStoreError(code: Int32(code), "words", path: "/store")
            #expect(error.reason == reason)
            #expect(error.detail.contains("first unlock") == (code == 3 || code == 23), "\(code)")
        }
    }
}
