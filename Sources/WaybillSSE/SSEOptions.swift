public import Waybill

extension OptionName {
    /// The HTTP method of a request.
    public static let method = OptionKey<String>("method")
    /// The event types wanted; without this option, events of all types arrive.
    public static let eventTypes = OptionKey<Set<String>>("eventTypes")
    /// The id of the last event of an earlier stream.
    public static let lastEventID = OptionKey<String>("lastEventID")
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
