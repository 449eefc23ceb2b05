import WireCore

/// The keys that are made to be stored, by their names: what a later process finds in a store is a name.
package enum StoredKeys {
    private struct State: Sendable {
        /// Nil for a name that several keys have: an app declares a key of a module again, or makes a key for each use.
        var keys: [WireName: OptionName?] = [:]
        /// The number of names that several keys have.
        var ambiguousCount = 0
    }

    private static let made = Locked(State())

    static func add(_ key: OptionName) {
        made.withLock { made in
            let name = WireName(key.text)
            guard let former = made.keys.updateValue(key, forKey: name) else { return }
            made.keys.updateValue(nil, forKey: name)
            if former != nil { made.ambiguousCount += 1 }
        }
    }

    /// Counts the changes of what names mean: a name is new, or no longer the name of one key.
    package static var generation: Int {
        made.withLock { $0.keys.count + $0.ambiguousCount }
    }

    /// Returns the key with a name.
    ///
    /// - Returns: Nil if this process has made no key with that name, or several.
    static func key(_ name: String) -> OptionName? {
        made.withLock { $0.keys[WireName(name)] ?? nil }
    }

    /// Whether several keys have the name of a stored key.
    static func isAmbiguous(_ key: OptionName) -> Bool {
        made.withLock { $0.ambiguousCount > 0 && $0.keys[WireName(key.text)] != .some(key) }
    }
}

extension OptionName {
    /// Whether the option is stored with a message.
    package var isStored: Bool { coding != nil }

    /// Whether a stored option is one of this key, with a value that the key can have.
    package func knows(_ option: StoredOption) -> Bool {
        StoredKeys.key(option.name) === self && coding?.box(self, option.value) != nil
    }
}

extension EntryCommand {
    /// The options that are kept with a stored message.
    ///
    /// - Parameter isLeftOut: Whether an option is not stored all the same.
    /// - Returns: The encoded options; empty where none is stored.
    /// - Throws: ``StoredOptionsError``.
    package func storedOptions(
        unless isLeftOut: (OptionName) -> Bool
    ) throws(StoredOptionsError) -> StoredOptions {
        guard let boxes else { return StoredOptions() }
        return try StoredOptions(boxes, unless: isLeftOut)
    }

    /// Adds stored options.
    ///
    /// - Returns: The name of the first option whose name or value this process does not know; nil if it knows all.
    package mutating func add(_ options: StoredOptions) -> String? {
        var unknown: String?
        options.forEach { name, value in
            guard let key = StoredKeys.key(name), let box = key.coding?.box(key, value)
            else {
                unknown = unknown ?? name
                return
            }
            set(box)
        }
        return unknown
    }
}
