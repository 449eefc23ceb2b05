import WireCore

/// The keys that are made to be stored, by their names: what a later process finds in a store is a name.
enum StoredKeys {
    /// Nil for a name that several keys have: an app declares a key of a module again, or makes a key for each use.
    private static let made = Locked<[WireName: OptionName?]>([:])

    static func add(_ key: OptionName) {
        made.withLock { made in
            let name = WireName(key.text)
            made.updateValue(made.keys.contains(name) ? nil : key, forKey: name)
        }
    }

    /// Returns the key with a name.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - keys: The keys of the transport, which come first.
    /// - Returns: Nil if this process has made no key with that name, or several.
    static func key(_ name: String, amongst keys: [OptionName]) -> OptionName? {
        let known = keys.first { $0.text.hasSameBytes(as: name) }
        return known ?? made.withLock { $0[WireName(name)] ?? nil }
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
    /// - Parameters:
    ///   - options: The options.
    ///   - keys: The keys of the transport.
    /// - Returns: The name of the first option whose name or value this process does not know; nil if it knows all.
    package mutating func add(_ options: StoredOptions, knowing keys: [OptionName]) -> String? {
        var unknown: String?
        options.forEach { name, value in
            guard let key = StoredKeys.key(name, amongst: keys),
                let box = key.coding?.box(key, value)
            else {
                unknown = unknown ?? name
                return
            }
            set(box)
        }
        return unknown
    }
}
