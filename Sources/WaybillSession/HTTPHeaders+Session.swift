package import HTTPWire
package import Waybill

extension HTTPHeaders {
    /// The same names and values in the same order.
    package init(_ headers: Headers) {
        self.init(headers.map { Field(name: $0.name, value: $0.value) })
    }

    /// The name of the first field that this side writes itself, so that the app must not set it; nil without one.
    package var reservedName: String? {
        let reserved = [
            "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "expect",
        ]
        let field = first { field in
            reserved.contains { HTTPSyntax.areSameName($0, field.name) }
        }
        return field?.name
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
