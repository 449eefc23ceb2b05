// `import WaybillTesting` brings this module, and this module brings entries, providers and messages.
@_exported public import Waybill
