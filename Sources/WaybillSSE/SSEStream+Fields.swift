import HTTPWire
import WaybillLink
import WireCore

extension SSEStream {
    /// The fields of each request for a stream, beside the entry's.
    func fields(_ lastEventID: String) -> [(String, String)] {
        // What Fetch adds for the cache mode "no-store" (Fetch Standard, 4.5), which an EventSource has.
        var fields = [
            ("Accept", "text/event-stream"), ("Cache-Control", "no-cache"), ("Pragma", "no-cache"),
        ]
        let codings = configuration.acceptsCompression ? HTTPContentDecoder.acceptedCodings : nil
        fields.append(("Accept-Encoding", codings ?? "identity"))
        // What a field cannot hold (a stray control character) is not sent at all.
        if !lastEventID.isEmpty, lastEventID.utf8.allSatisfy(HTTPSyntax.isValueByte) {
            fields.append(("Last-Event-ID", lastEventID))
        }
        return fields
    }
}
