"""Servers of event streams whose paths select their behaviour.

    eventsource_peer.py PORT

listens on 127.0.0.1 at PORT (aiohttp-sse), PORT + 1 (sse-starlette on uvicorn) and PORT + 2 (a server of this
file, which writes exact bytes). The first two are separate processes, so that they can be killed. All three know

    /numbered?count=N&pause=P    events with the ids 1 to N, from behind Last-Event-ID, with a pause of P ms after
                                 each hundred; 204 when there is none left
    /echo                        a POST whose lines come back as events

the libraries with CR LF at the ends of lines and with comments in between. Only the third server knows

    /kill?server=aiohttp|starlette       kills that process and starts another one
    /numbered?...&cut=M                  ends the connection after M events, within the next one
    /numbered?...&coding=gzip|deflate    compressed, flushed after each event; with cut, cut as well
    /slow?ms=M                           an event of letters, CR LF and umlauts in chunks, a byte every M ms
    /broken?where=W                      one event, then the connection ends: in a character, behind the CR of a
                                         CR LF (line-end), in a chunk's size, in the CR LF behind a chunk
                                         (chunk-end), in its data; asked again from there, the next one; then 204
    /framed?how=F                        three events: length, chunked (with extensions and trailers), or close
    /busy?key=K                          one event; asked again from there with the same key, first 503 with
                                         Retry-After: 1, then another event; then 204
    /stall                               an event, and then nothing; asked again, another, and 204
    /line?bytes=N  /event?bytes=N        a line of N bytes; an event of lines with N bytes; then another event
    /comments?bytes=N                    comments of N bytes altogether, then an event
    /lies                                says gzip, and is not

Any other path is answered by 404.
"""
import asyncio
import signal
import subprocess
import sys
import zlib
from urllib.parse import parse_qs, urlsplit

PIECE = 1 << 16


def asked(query, last_id):
    """First and last id to send, and the pause in seconds."""
    count, first = int(query.get("count", 10)), int(last_id or 0) + 1
    return first, count, float(query.get("pause", 0)) / 1000


# The servers on libraries.

def serve_aiohttp(port):
    from aiohttp import web
    from aiohttp_sse import EventSourceResponse

    async def numbered(request):
        first, count, pause = asked(request.query, request.headers.get("Last-Event-ID"))
        if first > count:
            return web.Response(status=204)
        response = EventSourceResponse(ping_interval=0.02)
        await response.prepare(request)
        for number in range(first, count + 1):
            await response.send(f"event {number}", id=str(number), retry=20 if number == first else None)
            if number % 100 == 0:
                await asyncio.sleep(pause)
        response.stop_streaming()
        return response

    async def echo(request):
        text = (await request.read()).decode()
        response = EventSourceResponse(allow_all_methods=True)
        await response.prepare(request)
        for line in text.splitlines():
            await response.send(line, event="line")
        response.stop_streaming()
        return response

    application = web.Application()
    application.add_routes([web.get("/numbered", numbered), web.post("/echo", echo)])
    web.run_app(application, host="127.0.0.1", port=port, print=None, handle_signals=False)


def serve_starlette(port):
    import uvicorn
    from sse_starlette.sse import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def numbered(request):
        first, count, pause = asked(request.query_params, request.headers.get("Last-Event-ID"))
        if first > count:
            return Response(status_code=204)

        async def events():
            for number in range(first, count + 1):
                retry = {"retry": 20} if number == first else {}
                yield {"data": f"event {number}", "id": str(number), **retry}
                if number % 100 == 0:
                    await asyncio.sleep(pause)

        return EventSourceResponse(events(), ping=1)

    async def echo(request):
        text = (await request.body()).decode()

        async def events():
            for line in text.splitlines():
                yield {"data": line, "event": "line"}

        return EventSourceResponse(events())

    routes = [Route("/numbered", numbered), Route("/echo", echo, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")


# The server that writes exact bytes.

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream;charset=utf-8\r\nCache-Control: no-store\r\n"


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class Peer:
    def __init__(self, port):
        self.port = port
        self.children = {}
        self.turned_away = set()

    def start(self, name):
        port = self.port + list(SERVERS).index(name)
        self.children[name] = subprocess.Popen([sys.executable, __file__, "--serve", name, str(port)])

    def stop(self, name):
        self.children[name].kill()
        self.children[name].wait()

    async def handle(self, reader, writer):
        try:
            await self.answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    async def answer(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        parts = urlsplit(lines[0].split()[1])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        action = getattr(self, "do_" + parts.path.strip("/"), None)
        if action is None:
            await self.status(writer, "404 Not Found")
            return
        await action(writer, query, fields.get("last-event-id", ""), body)

    async def status(self, writer, status, body=b""):
        length = b"" if status.startswith("204") else b"Content-Length: %d\r\n" % len(body)
        writer.write(b"HTTP/1.1 %b\r\n%bConnection: close\r\n\r\n%b" % (status.encode(), length, body))
        await writer.drain()

    async def do_kill(self, writer, query, last_id, body):
        self.stop(query["server"])
        self.start(query["server"])
        await self.status(writer, "200 OK", b"killed")

    async def do_echo(self, writer, query, last_id, body):
        events = b"".join(b"event: line\ndata: %b\n\n" % line for line in body.splitlines())
        writer.write(HEAD + b"Connection: close\r\n\r\n" + events)
        await writer.drain()

    async def do_numbered(self, writer, query, last_id, body):
        first, count, pause = asked(query, last_id)
        if first > count:
            return await self.status(writer, "204 No Content")
        coding, cut = query.get("coding"), int(query.get("cut", 0))
        coder = {"gzip": zlib.compressobj(6, zlib.DEFLATED, 31), "deflate": zlib.compressobj()}.get(coding)
        head = b"Content-Encoding: %b\r\n" % coding.encode() if coder else b""
        writer.write(HEAD + head + b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(first, count + 1):
            event = b"id: %d\r\nretry: 1\r\ndata: event %d\r\n\r\n" % (number, number)
            if coder:
                event = coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH)
            data = chunk(event)
            if cut and number - first == cut:
                # Each time the cut is at another place within the event.
                writer.write(data[: first * 7 % len(data)])
                await writer.drain()
                return
            writer.write(data)
            await writer.drain()
            if number % 100 == 0:
                await asyncio.sleep(pause)
        writer.write((chunk(coder.flush()) if coder else b"") + b"0\r\n\r\n")
        await writer.drain()

    async def do_slow(self, writer, query, last_id, body):
        if last_id:
            return await self.status(writer, "204 No Content")
        events = "\ufeffid: 1\r\ndata: größer\r\ndata:→ 😀\r\n\r\n: comment\r\n\r\ndata: end\r\n\r\n".encode()
        data = b"".join(chunk(events[at : at + 7]) for at in range(0, len(events), 7)) + b"0\r\n\r\n"
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for at in range(len(data)):
            writer.write(data[at : at + 1])
            await writer.drain()
            await asyncio.sleep(float(query.get("ms", 20)) / 1000)

    async def do_broken(self, writer, query, last_id, body):
        first = "id: 1\r\nretry: 1\r\ndata: größer\r\n\r\n".encode()
        second = "id: 2\r\ndata: größer als zuvor\r\n\r\n".encode()
        if last_id == "2":
            return await self.status(writer, "204 No Content")
        if last_id == "1":
            return await self.write_chunks(writer, second, b"0\r\n\r\n")
        where = query.get("where")
        begun = {"character": chunk(second[:16]), "line-end": b"", "chunk-size": b"1", "chunk-end": b"",
                 "data": b"%x\r\n" % len(second) + second[:20]}[where]
        data = chunk(first)
        if where == "line-end":
            # The event's last line feed is missing. The event is complete all the same (HTML Standard, 9.2.5).
            data = b"%x\r\n" % len(first) + first[:-1]
        if where == "chunk-end":
            data = data[:-1]
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + data + begun)
        await writer.drain()

    async def write_chunks(self, writer, *pieces):
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(pieces[0]) + b"".join(pieces[1:]))
        await writer.drain()

    async def do_framed(self, writer, query, last_id, body):
        if last_id:
            return await self.status(writer, "204 No Content")
        events = b"retry: 1\n\ndata: a\n\ndata: b\n\nid: 3\ndata: c\n\n"
        how = query.get("how")
        if how == "length":
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(events) + events)
        elif how == "chunked":
            data = b'1f;name="a \\" b"\r\n' + events[:31] + b"\r\n0" + b"%x\r\n" % (len(events) - 31) + events[31:]
            writer.write(HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + data + b"\r\n0\r\nX-Sum: 1\r\n\r\n")
        else:
            writer.write(HEAD + b"Connection: close\r\n\r\n" + events)
        await writer.drain()

    async def do_busy(self, writer, query, last_id, body):
        if last_id == "2":
            return await self.status(writer, "204 No Content")
        if last_id == "1" and query["key"] not in self.turned_away:
            self.turned_away.add(query["key"])
            writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            return await writer.drain()
        number = b"2" if last_id else b"1"
        await self.write_chunks(writer, b"id: %b\ndata: %b\n\n" % (number, number), b"0\r\n\r\n")

    async def do_stall(self, writer, query, last_id, body):
        if last_id == "2":
            return await self.status(writer, "204 No Content")
        number = b"2" if last_id else b"1"
        writer.write(HEAD + b"\r\nretry: 1\nid: %b\ndata: %b\n\ndata: unfinished" % (number, number))
        await writer.drain()
        await asyncio.sleep(3600)

    async def pour(self, writer, start, piece, count):
        writer.write(HEAD + b"\r\n" + start)
        for _ in range(count // len(piece)):
            writer.write(piece)
            await writer.drain()

    async def do_line(self, writer, query, last_id, body):
        await self.pour(writer, b"retry: 1\ndata: before\n\ndata: ", b"x" * PIECE, int(query["bytes"]))
        writer.write(b"\n\ndata: after\n\n")
        await writer.drain()

    async def do_event(self, writer, query, last_id, body):
        await self.pour(writer, b"data: before\n\n", b"data: xxxxxxxxx\n" * (PIECE // 16), int(query["bytes"]))
        writer.write(b"\ndata: after\n\n")
        await writer.drain()

    async def do_comments(self, writer, query, last_id, body):
        await self.pour(writer, b"", b": xxxxxxxxxxxxx\n" * (PIECE // 16), int(query["bytes"]))
        writer.write(b"data: after\n\n")
        await writer.drain()

    async def do_lies(self, writer, query, last_id, body):
        writer.write(HEAD + b"Content-Encoding: gzip\r\n\r\ndata: a\n\n")
        await writer.drain()


async def main(port):
    peer = Peer(port)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = await asyncio.start_server(peer.handle, "127.0.0.1", port + 2)
    for name in SERVERS:
        peer.start(name)
    await ended.wait()
    server.close()
    for name in SERVERS:
        peer.stop(name)


SERVERS = {"aiohttp": serve_aiohttp, "starlette": serve_starlette}
if sys.argv[1] == "--serve":
    SERVERS[sys.argv[2]](int(sys.argv[3]))
else:
    asyncio.run(main(int(sys.argv[1])))
