import HTTPWire
import WaybillLink
import WireCore

extension SSEStream {
    /// Returns the fields of each request for a stream, besides those of the entry.
    func fields(_ lastEventID: String) -> [(String, String)] {
        // The fields that Fetch adds for the cache mode "no-store" of an EventSource (Fetch Standard, 4.5).
        var fields = [
            ("Accept", "text/event-stream"), ("Cache-Control", "no-cache"), ("Pragma", "no-cache"),
        ]
        let codings = configuration.acceptsCompression ? HTTPContentDecoder.acceptedCodings : nil
        fields.append(("Accept-Encoding", codings ?? "identity"))
        // An ID with a control character, which a field cannot hold, is not sent.
        if !lastEventID.isEmpty, lastEventID.utf8.allSatisfy(HTTPSyntax.isValueByte) {
            fields.append(("Last-Event-ID", lastEventID))
        }
        return fields
    }
}
