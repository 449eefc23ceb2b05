#if os(Linux)
    import Glibc

    /// What this process has open.
    package struct OpenResources: Sendable {
        /// Descriptors, whatever they are for.
        package let descriptors: Int
        /// Threads of the event loop, by their name.
        package let loops: Int
        /// Threads of any kind.
        package let threads: Int
        /// What was allocated and not freed, and what the allocator keeps for each thread, some 200 KiB.
        ///
        /// Not the memory of the process, in which much may be free and in between.
        package let allocatedBytes: Int

        /// - Parameter loopThreadName: The name of the event loop's thread.
        package init(loop loopThreadName: String) {
            descriptors = Self.entries(of: "/proc/self/fd").count
            let tasks = Self.entries(of: "/proc/self/task")
            threads = tasks.count
            allocatedBytes = Self.countAllocatedBytes()
            loops = tasks.count { task in
                Self.contents(of: "/proc/self/task/\(task)/comm").contains(loopThreadName)
            }
        }

        /// Measures until what is expected is so, twice in a row with as many descriptors, for ten seconds at most.
        ///
        /// The kernel lists a thread for a moment after it was joined, and a descriptor until the thread that closes
        /// it gets to run; what leaks stays. The first sleep has the runtime open what it needs to sleep.
        ///
        /// - Parameters:
        ///   - loopThreadName: The name of the event loop's thread.
        ///   - isExpected: Whether a measurement is what is expected.
        /// - Returns: The last measurement.
        package static func settled(
            loop loopThreadName: String,
            _ isExpected: (Self) -> Bool
        ) async -> Self {
            let end = ContinuousClock.now + .seconds(10)
            var last: Self?
            while true {
                try? await Task.sleep(for: .milliseconds(20))
                let found = Self(loop: loopThreadName)
                let isStable = found.descriptors == last?.descriptors
                if isStable && isExpected(found) || ContinuousClock.now >= end { return found }
                last = found
            }
        }

        /// Asks the C library's allocator: its module map leaves `malloc_info` out.
        private static func countAllocatedBytes() -> Int {
            // The signature is glibc's: int malloc_info(int, FILE *).
            typealias Inform = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
            var text: UnsafeMutablePointer<CChar>?
            var size = 0
            guard let symbol = dlsym(nil, "malloc_info"), let stream = open_memstream(&text, &size)
            else { return 0 }
            _ = unsafeBitCast(symbol, to: Inform.self)(0, stream)
            fclose(stream)
            defer { free(text) }
            guard let text else { return 0 }
            // The sums of all heaps come last.
            let sums = String(cString: text).split(separator: "\n").suffix(8)
            func bytes(_ name: String) -> Int {
                // `<total type="rest" count="1" size="50288"/>`
                let parts = sums.first { $0.contains("\"\(name)\"") }?.split(separator: "\"")
                return parts?.dropLast().last.flatMap { Int($0) } ?? 0
            }
            return bytes("current") + bytes("mmap") - bytes("rest") - bytes("fast")
        }

        /// The first bytes of a small file; empty when there is none.
        private static func contents(of path: String) -> String {
            guard let file = fopen(path, "r") else { return "" }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = fread(&bytes, 1, bytes.count, file)
            return String(decoding: bytes.prefix(count), as: UTF8.self)
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
