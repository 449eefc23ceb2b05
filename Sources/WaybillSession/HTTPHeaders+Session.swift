package import HTTPWire
package import Waybill

extension HTTPHeaders {
    /// The same names and values in the same order.
    package init(_ headers: Headers) {
        self.init(headers.map { Field(name: $0.name, value: $0.value) })
    }
}

extension Headers {
    /// The same names and values in the same order.
    package init(_ headers: HTTPHeaders) {
        self.init()
        lookup = .ignoringCase
        for field in headers { append(name: field.name, value: field.value) }
    }
}
