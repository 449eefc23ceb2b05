import STOMPWire
import Waybill

extension STOMPHeaders {
    /// The same names and values in the same order.
    init(_ headers: Headers) {
        self.init(headers.map { Field($0.name, $0.value) })
    }
}

extension Headers {
    /// The same names and values in the same order.
    init(_ headers: STOMPHeaders) {
        self.init()
        for field in headers.fields { append(name: field.name, value: field.value) }
    }
}
