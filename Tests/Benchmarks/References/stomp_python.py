"""stomp.py with the jobs of websocket_codec's STOMP parser: frames of five headers and 100, 1,024 and 16,384 bytes.

    stomp_python.py

Prints nanoseconds per frame: `parse` for the frame cut out beforehand, which favours it, and `read` for all that
the library does from bytes received to a frame, sixteen frames at a time or 16 KiB. The library from PyPI
(python3 -m venv FOLDER; FOLDER/bin/pip install stomp.py) or Debian's python3-stomp.
"""
import json
import time

import stomp
from stomp.transport import BaseTransport
from stomp.utils import parse_frame


def message(size):
    head = (
        f"MESSAGE\ndestination:/topic/benchmark\nmessage-id:T_1@@broker-1@@1234567\nsubscription:1\n"
        f"content-type:text/plain\ncontent-length:{size}\n\n"
    )
    return head.encode() + b"x" * size


class Replay(BaseTransport):
    """A transport that receives the same bytes each time."""

    def __init__(self, data):
        super().__init__(False)
        self.data = data
        self.running = True

    def receive(self):
        return self.data


def nanoseconds(body, count):
    body()
    best = []
    for _ in range(3):
        start = time.process_time()
        for _ in range(count):
            body()
        best.append((time.process_time() - start) * 1e9 / count)
    return min(best)


def main():
    result = {"job": "stomp.py"}
    for size in [100, 1024, 16384]:
        frame = message(size)
        parsed = parse_frame(frame)
        assert parsed.cmd == "MESSAGE" and len(parsed.headers) == 5 and len(parsed.body) == size
        result[f"parse_{size}_ns"] = round(nanoseconds(lambda: parse_frame(frame), 20000), 1)
        batch = 16 if size < 16384 else 1
        transport = Replay((frame + b"\0") * batch)
        read = getattr(transport, "_BaseTransport__read", None)
        if read is None:
            continue
        assert len([parse_frame(each) for each in read()]) == batch
        whole = nanoseconds(lambda: [parse_frame(each) for each in read()], 20000 // batch)
        result[f"read_{size}_ns"] = round(whole / batch, 1)
    version = stomp.__version__
    print(json.dumps({**result, "version": version if isinstance(version, str) else ".".join(map(str, version))}))


main()
