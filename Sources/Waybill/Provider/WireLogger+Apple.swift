#if canImport(Darwin)
    import os

    /// Writes each record to the system's log on Apple platforms, at the level `debug`.
    ///
    /// Without bodies, records hold no secrets. The system's log therefore shows them completely.
    public struct OSLogWireLogger: WireLogger {
        private let logger: Logger

        /// Makes a logger with a subsystem, such as the app's bundle identifier, and a category.
        public init(subsystem: String, category: String = "waybill") {
            logger = Logger(subsystem: subsystem, category: category)
        }

        /// Writes the record.
        public func log(_ record: WireRecord) {
            logger.debug("\(record.line, privacy: .public)")
        }
    }
#endif
