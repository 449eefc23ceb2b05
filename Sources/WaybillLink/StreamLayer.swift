/// A stream over another one, to which it passes every call that it does not handle itself.
package protocol StreamLayer: ByteStream {
    /// The stream below.
    var base: any ByteStream { get }
}

extension StreamLayer {
    package func scheduleFlush() -> Bool { base.scheduleFlush() }
    package func readAgain() { base.readAgain() }
    package func finishWriting() { base.finishWriting() }
    package func close() { base.close() }
    package func abandon() { base.abandon() }
    package func keepAlive() { base.keepAlive() }
    package var hasInput: Bool { base.hasInput }
    package var tls: TLSAgreement? { base.tls }
}
