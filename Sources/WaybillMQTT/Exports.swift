// One import is enough: `import WaybillMQTT` brings entries, providers and messages with it.
@_exported public import Waybill
