extension MockTransport: CustomReflectable {
    /// Nothing: bodies and values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
