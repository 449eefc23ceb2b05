#if os(Linux)
    import Foundation
    import Testing

    /// The certificates of `Tests/Servers/certificates`, made once for each run.
    enum Certificates {
        /// Their folder; nil without the `openssl` command, which makes them.
        static let folder: String? = {
            if let made = ProcessInfo.processInfo.environment["WAYBILL_CERTIFICATES"] {
                return made
            }
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent(
                    "waybill-certificates-\(ProcessInfo.processInfo.processIdentifier)"
                )
            let script = URL(fileURLWithPath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Servers/certificates")
            do {
                try FileManager.default.createDirectory(
                    at: folder,
                    withIntermediateDirectories: true
                )
                let process = try Process.run(script, arguments: [folder.path])
                process.waitUntilExit()
                return process.terminationStatus == 0 ? folder.path : nil
            } catch {
                return nil
            }
        }()

        static let areThere = folder != nil

        /// The reason for skipping tests when there are no certificates.
        static let absence: Comment =
            "no certificates: the command openssl is missing, or Tests/Servers/certificates failed"

        static func path(_ name: String) -> String { "\(folder ?? "")/\(name)" }

        static func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
        }

        /// A pipe without a writer.
        static func pipe() throws -> String {
            let name = path("pipe-\(UUID().uuidString)")
            guard mkfifo(name, 0o600) == 0 else { throw POSIXError(.EIO) }
            return name
        }

        /// The hash of the public key of `server`.
        static func pin() throws -> [UInt8] {
            let digits = Array(String(decoding: try bytes("server.pin"), as: UTF8.self))
            return stride(from: 0, to: 64, by: 2).compactMap {
                UInt8(String(digits[$0..<$0 + 2]), radix: 16)
            }
        }
    }
#endif
