import STOMPWire
import WaybillSession

/// One request that waits for its receipt.
typealias STOMPPendingCall = PendingCall<STOMPReceivedHeaders>

extension PendingCall: STOMPCall where Answer == STOMPReceivedHeaders {}
