// One import is enough: `import WaybillTesting` brings the mocks, and with them entries, providers and messages.
@_exported public import WaybillMock
