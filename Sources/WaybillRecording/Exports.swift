@_exported public import Waybill
