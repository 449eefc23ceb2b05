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
        /// The memory that is in use; a multiple of the size of a page.
        package let residentBytes: Int

        /// - Parameter loopThreadName: The name of the event loop's thread.
        package init(loop loopThreadName: String) {
            // What the allocator keeps for later is not in use, and differs from one moment to the next.
            Self.trimAllocator()
            descriptors = Self.entries(of: "/proc/self/fd").count
            let tasks = Self.entries(of: "/proc/self/task")
            threads = tasks.count
            let pages = Self.contents(of: "/proc/self/statm").split(separator: " ")
            residentBytes = (pages.count > 1 ? Int(pages[1]) ?? 0 : 0) * Int(getpagesize())
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

        /// `malloc_trim(0)`, where the C library has it; its module map leaves it out.
        private static func trimAllocator() {
            guard let symbol = dlsym(nil, "malloc_trim") else { return }
            // The signature is glibc's: int malloc_trim(size_t).
            typealias Trim = @convention(c) (Int) -> Int32
            _ = unsafeBitCast(symbol, to: Trim.self)(0)
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
