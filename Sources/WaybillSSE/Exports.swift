// One import is enough: `import WaybillSSE` brings entries, providers and messages with it.
@_exported public import Waybill
