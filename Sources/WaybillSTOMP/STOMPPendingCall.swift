import STOMPWire
import WaybillSession

/// One request that waits for its receipt.
typealias STOMPPendingCall = PendingCall<STOMPReceivedHeaders>

/// The call of an UNSUBSCRIBE that nothing waits for.
final class STOMPLeaveCall: STOMPCall {}

extension PendingCall: STOMPCall where Answer == STOMPReceivedHeaders {}
