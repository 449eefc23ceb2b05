import MQTTWire

/// A call without a waiting task, such as one of an earlier process.
package final class MQTTStoredCall: MQTTCall {
    typealias Drop = @Sendable (MQTTStoredCall, MQTTDroppedMessage) -> Void

    /// Called when the server has answered.
    let didEnd: @Sendable () -> Void
    /// Called after it with the answer to a message.
    private let didAnswer: (@Sendable (MQTTReasonCode, MQTTProperties) -> Void)?
    /// Called when the message was dropped.
    private let didDrop: Drop?

    init(
        didEnd: @escaping @Sendable () -> Void,
        didAnswer: (@Sendable (MQTTReasonCode, MQTTProperties) -> Void)? = nil,
        didDrop: Drop? = nil
    ) {
        self.didEnd = didEnd
        self.didAnswer = didAnswer
        self.didDrop = didDrop
    }

    /// Notes that the server has the message, or has refused it.
    func answer(_ code: MQTTReasonCode, _ properties: MQTTProperties) {
        didEnd()
        didAnswer?(code, properties)
    }

    /// Notes that the message was dropped.
    ///
    /// - Returns: Whether that was reported.
    @discardableResult
    func drop(_ message: MQTTDroppedMessage) -> Bool {
        guard let didDrop else {
            didEnd()
            return false
        }
        didDrop(self, message)
        return true
    }
}
