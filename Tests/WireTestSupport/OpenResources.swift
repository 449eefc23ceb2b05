#if os(Linux)
    import Glibc

    /// What this process has open.
    package struct OpenResources: Sendable {
        /// Descriptors, whatever they are for.
        package let descriptors: Int
        /// Threads of the event loop, by their name.
        package let loops: Int

        /// - Parameter loopThreadName: The name of the event loop's thread.
        package init(loop loopThreadName: String) {
            descriptors = Self.entries(of: "/proc/self/fd").count
            loops = Self.entries(of: "/proc/self/task").count { task in
                guard let file = fopen("/proc/self/task/\(task)/comm", "r") else { return false }
                defer { fclose(file) }
                var name = [UInt8](repeating: 0, count: 64)
                let count = fread(&name, 1, 63, file)
                return String(decoding: name.prefix(count), as: UTF8.self).contains(loopThreadName)
            }
        }

        private static func entries(of folder: String) -> [String] {
            guard let directory = opendir(folder) else { return [] }
            defer { closedir(directory) }
            var names: [String] = []
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if !name.hasPrefix(".") { names.append(name) }
            }
            return names
        }
    }
#endif
