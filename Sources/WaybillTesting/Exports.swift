// One import is enough: `import WaybillTesting` brings entries, providers and messages with it.
@_exported public import Waybill
