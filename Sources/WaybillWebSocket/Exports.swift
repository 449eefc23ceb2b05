// A single `import WaybillWebSocket` is enough: it brings entries, providers and messages with it.
@_exported public import Waybill
