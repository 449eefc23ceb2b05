/// A conformance to `Decodable` that belongs to no actor, found at run time.
///
/// The members of a type that is isolated to an actor, as all are in a module with default isolation, belong to that
/// actor, and the type's conformance with them (SE-0470). Messages are decoded wherever they are read, so such a type
/// is refused. A cast of the type itself would not tell: the runtime looks at the isolation only where a value is cast.
/// It refuses the conformance on its own actor, too, only where the cast asks for a protocol that is `Sendable`.
enum FreeDecodable {
    fileprivate protocol Witness: Sendable {}

    /// Stands for a value of a type of which there is none yet.
    fileprivate struct Probe<Value>: Witness {}

    /// Whether values of this type may be decoded anywhere.
    static func includes(_ type: Any.Type) -> Bool {
        func cast<Value>(_ type: Value.Type) -> Bool {
            let probe: Any = Probe<Value>()
            return probe is any Decodable & Witness
        }
        // The first cast is fast, and decides for types without any conformance.
        return type is any Decodable.Type && cast(type)
    }

    /// Whether a type cannot be decoded here because its conformance to `Decodable` belongs to an actor.
    static func isIsolated(_ type: Any.Type) -> Bool {
        type is any Decodable.Type && !includes(type)
    }
}

extension FreeDecodable.Probe: Decodable where Value: Decodable {
    init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "a probe")
        )
    }
}
