/// A transport that may store sends, as the entries state them.
package protocol StoringTransport: Transport {
    /// Whether the transport has a store.
    var storesSends: Bool { get }
}
