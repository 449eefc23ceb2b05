// One import is enough: `import WaybillWebSocket` brings entries, providers and messages with it.
@_exported public import Waybill
