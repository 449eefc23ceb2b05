#if os(Linux)
    import Glibc

    /// The resources that this process holds.
    package struct OpenResources: Sendable {
        /// The number of descriptors of any kind.
        package let descriptors: Int
        /// The number of threads with the event loop's name.
        package let loops: Int
        /// The number of all threads.
        package let threads: Int
        /// Bytes that were allocated and not freed, and some 200 KiB that the allocator keeps for each thread.
        ///
        /// The memory of the process would be no measure: it also contains what is free.
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

        /// Measures until the measurement is as expected, twice in a row with as many descriptors, for two minutes
        /// at most.
        ///
        /// The kernel lists a thread for a moment after it was joined, and a descriptor until the thread that closes
        /// it runs. A leak stays. The first sleep opens what the runtime needs for sleeping.
        ///
        /// - Parameters:
        ///   - loopThreadName: The name of the event loop's thread.
        ///   - isExpected: Returns true for a measurement that ends the wait.
        /// - Returns: The last measurement.
        package static func settled(
            loop loopThreadName: String,
            _ isExpected: (Self) -> Bool
        ) async -> Self {
            let end = ContinuousClock.now + .seconds(120)
            var last: Self?
            while true {
                try? await Task.sleep(for: .milliseconds(20))
                let found = Self(loop: loopThreadName)
                let isStable = found.descriptors == last?.descriptors
                if isStable && isExpected(found) || ContinuousClock.now >= end { return found }
                last = found
            }
        }

        /// Asks glibc's allocator with `malloc_info`, which the module map of the C library leaves out.
        private static func countAllocatedBytes() -> Int {
            // The signature in glibc: int malloc_info(int, FILE *).
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

        /// The first bytes of a small file; empty when the file does not exist.
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
