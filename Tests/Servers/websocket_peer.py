"""A WebSocket server whose paths select its behaviour, on Python's `websockets`.

    websocket_peer.py PORT

listens on 127.0.0.1 at PORT (permessage-deflate), PORT + 1 (no extension) and PORT + 2 (permessage-deflate with
a window of 11 bits and no context take-over in both directions). At each of them:

    /echo                      sends every message back
    /plain                     the same; the tests use it at PORT + 1
    /close?code=4000&reason=R  closes at once with that code and reason
    /subprotocol               selects chat.v2 if the client offers it, and echoes
    /refuse                    answers 401 with a body and WWW-Authenticate
    /fragments                 sends one text message in three fragments with a ping between them, and echoes
    /abort                     sends one message, then ends the TCP connection without a close frame
    /big?size=N                sends one binary message of N bytes, and echoes
    /headers                   sends the headers of the request as a JSON object, and echoes

Any other path is answered by 404.
"""
import asyncio
import http
import json
import sys
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Opcode
from websockets.legacy.server import WebSocketServerProtocol, serve

PATHS = {"/echo", "/plain", "/close", "/subprotocol", "/refuse", "/fragments", "/abort", "/big", "/headers"}


class Peer(WebSocketServerProtocol):
    async def process_request(self, path, request_headers):
        place = urlsplit(path).path
        if place == "/refuse":
            headers = [("WWW-Authenticate", 'Bearer realm="waybill"'), ("Content-Type", "text/plain")]
            return http.HTTPStatus.UNAUTHORIZED, headers, b"Say who you are.\n"
        if place not in PATHS:
            return http.HTTPStatus.NOT_FOUND, [("Content-Type", "text/plain")], b"There is nothing here.\n"
        return None

    def select_subprotocol(self, client_subprotocols, server_subprotocols):
        wanted = urlsplit(self.path).path == "/subprotocol" and "chat.v2" in client_subprotocols
        return "chat.v2" if wanted else None


async def echo(peer):
    async for message in peer:
        await peer.send(message)


async def send_fragments(peer):
    await peer.write_frame(False, Opcode.TEXT, b"one, ")
    await peer.write_frame(False, Opcode.CONT, "tw\u00f6, ".encode()[:3])
    await peer.ping(b"between")
    await peer.write_frame(True, Opcode.CONT, "tw\u00f6, ".encode()[3:] + b"three")


async def handle(peer):
    parts = urlsplit(peer.path)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    try:
        if parts.path == "/close":
            await peer.close(int(query.get("code", 1000)), query.get("reason", ""))
            return
        if parts.path == "/abort":
            await peer.send("the last words")
            peer.transport.abort()
            return
        if parts.path == "/fragments":
            await send_fragments(peer)
        elif parts.path == "/big":
            await peer.send(bytes(index & 255 for index in range(int(query.get("size", 0)))))
        elif parts.path == "/headers":
            await peer.send(json.dumps({name.lower(): value for name, value in peer.request_headers.raw_items()}))
        await echo(peer)
    except ConnectionClosed:
        pass


async def main(port):
    small = ServerPerMessageDeflateFactory(
        server_no_context_takeover=True,
        client_no_context_takeover=True,
        server_max_window_bits=11,
        client_max_window_bits=11,
    )
    # No pings of its own and no limit, since the tests decide. Only the first port enables compression by default.
    common = {"create_protocol": Peer, "subprotocols": ["chat.v2"], "max_size": None, "ping_interval": None}
    for offset, how in enumerate([{}, {"compression": None}, {"compression": None, "extensions": [small]}]):
        await serve(handle, "127.0.0.1", port + offset, **common, **how)
    await asyncio.Future()


asyncio.run(main(int(sys.argv[1])))
