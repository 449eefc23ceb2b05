import WaybillSSE
