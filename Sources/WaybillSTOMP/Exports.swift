// One import is enough: `import WaybillSTOMP` brings entries, providers and messages with it.
@_exported public import Waybill
