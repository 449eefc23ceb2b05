// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with the interface of Combine.
// Observed by: nobody.

/// Stands in for the parts of Combine that Waybill uses. No body here is ever run.

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol Cancellable {
    func cancel()
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public struct CombineIdentifier: Hashable, CustomStringConvertible, Sendable {
    public var description: String { "" }

    public init() {}
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol CustomCombineIdentifierConvertible {
    var combineIdentifier: CombineIdentifier { get }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
extension CustomCombineIdentifierConvertible where Self: AnyObject {
    public var combineIdentifier: CombineIdentifier { CombineIdentifier() }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol Subscription: Cancellable, CustomCombineIdentifierConvertible {
    func request(_ demand: Subscribers.Demand)
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public enum Subscribers {
    @frozen
    public struct Demand: Equatable, Comparable, Hashable, Sendable {
        public static let unlimited = Subscribers.Demand()
        public static let none = Subscribers.Demand()

        init() {}

        public static func max(_ value: Int) -> Subscribers.Demand { .none }

        public var max: Int? { nil }

        public static func += (lhs: inout Subscribers.Demand, rhs: Subscribers.Demand) {}

        public static func -= (lhs: inout Subscribers.Demand, rhs: Int) {}

        public static func < (lhs: Subscribers.Demand, rhs: Subscribers.Demand) -> Bool { false }

        public static func > (lhs: Subscribers.Demand, rhs: Int) -> Bool { false }

        public static func == (lhs: Subscribers.Demand, rhs: Int) -> Bool { false }
    }

    @frozen
    public enum Completion<Failure: Error> {
        case finished
        case failure(Failure)
    }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
extension Subscribers.Completion: Sendable {}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol Subscriber<Input, Failure>: CustomCombineIdentifierConvertible {
    associatedtype Input
    associatedtype Failure: Error

    func receive(subscription: any Subscription)
    func receive(_ input: Input) -> Subscribers.Demand
    func receive(completion: Subscribers.Completion<Failure>)
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol Publisher<Output, Failure> {
    associatedtype Output
    associatedtype Failure: Error

    func receive<S: Subscriber>(subscriber: S) where Failure == S.Failure, Output == S.Input
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
extension Publisher {
    public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
@frozen
public struct AnyPublisher<Output, Failure: Error>: Publisher {
    public init<P: Publisher>(_ publisher: P) where Output == P.Output, Failure == P.Failure {}

    public func receive<S: Subscriber>(subscriber: S)
    where Output == S.Input, Failure == S.Failure {}
}

// Apple's types are not Sendable either.

@available(*, unavailable)
extension AnyPublisher: Sendable {}
