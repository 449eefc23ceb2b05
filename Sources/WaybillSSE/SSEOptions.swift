public import Waybill

extension OptionName {
    /// The HTTP method of a request.
    public static let method = OptionKey<String>("method")
    /// The event types wanted; without this option, events of all types arrive.
    public static let eventTypes = OptionKey<Set<String>>("eventTypes")
    /// The id of the last event of an earlier stream.
    public static let lastEventID = OptionKey<String>("lastEventID")
}

// Keys of messages.
extension OptionName {
    /// The event type of a message; nil for `message`, the type of events that name none.
    public static var eventType: OptionKey<String> { streamEventType }
    /// Orders a message among the messages and stream events of its transport; later ones have higher serials.
    ///
    /// Only while the transport has an observer of stream events.
    public static let serial = OptionKey<UInt64>("serial")
}

extension SendOption {
    /// The HTTP method, such as `PUT`; without it `POST`.
    public static func method(_ name: String) -> Self { Self(.method, name) }
}

extension SubscribeOption {
    /// The HTTP method of the request for an event stream; without it `GET`, or `POST` where the entry has a body.
    public static func method(_ name: String) -> Self { Self(.method, name) }

    /// The event types wanted; without it all.
    public static func eventTypes(_ types: Set<String>) -> Self { Self(.eventTypes, types) }

    /// The id of the last event of an earlier stream, from which the server continues.
    public static func lastEventID(_ id: String) -> Self { Self(.lastEventID, id) }
}
