"""A Python client of event streams, sseclient-py on http.client: event_stream_python.py PORT COUNT SIZE CHUNKED."""
import http.client
import json
import resource
import sys
import time

import sseclient


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def pieces(response):
    while piece := response.read1(65536):
        yield piece


port, count, size, chunked = (int(argument) for argument in sys.argv[1:5])
connection = http.client.HTTPConnection("127.0.0.1", port)
cpu_before, before = cpu(), time.monotonic()
connection.request("GET", f"/pour?count={count}&size={size}&chunked={chunked}")
seen = 0
for event in sseclient.SSEClient(pieces(connection.getresponse())).events():
    if event.id != str(10000000 + seen) or len(event.data) != size:
        sys.exit(f"event {seen} is wrong")
    seen += 1
    if seen == count:
        break
if seen != count:
    sys.exit(f"{seen} events of {count}")
print(json.dumps({"job": "python", "count": count, "cpu_us_per_message": (cpu() - cpu_before) / count * 1e6,
                  "messages_per_second": count / (time.monotonic() - before)}))
