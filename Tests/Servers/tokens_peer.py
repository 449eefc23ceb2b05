"""Issues tokens that expire, and checks them for the servers that tokens.sh starts.

    tokens_peer.py PORT [GATE_PORT MQTT_PORT STOMP_PORT]

listens on 127.0.0.1 at PORT, and answers GET and POST alike:

    /issue?run=R&lifetime=S    a token for the run R, valid for S seconds (default: WAYBILL_TOKEN_LIFETIME, or 1)
    /counts?run=R              the counts for the tokens of R, as JSON: how many were issued, how many times one was
                               accepted or refused as expired, how many different ones were refused as expired, and
                               how many times something with the name of the run was not a token (invalid)
    /check                     204 if the token of `Authorization: Bearer TOKEN` is valid, otherwise 401
    /user /vhost /resource /topic    the questions of rabbitmq_auth_backend_http; the password is the token

A token contains the time of its issue and its lifetime, both in milliseconds. It is signed with a key of this process.

With the other ports there are two gates. Each checks a field that no server here can check, and relays all that
follows. The gate at GATE_PORT checks the user property `token` of MQTT 5's CONNECT for the server at MQTT_PORT. The gate
at GATE_PORT + 1 checks the header `Authorization` of STOMP's CONNECT for the server at STOMP_PORT.
"""
import asyncio
import collections
import hashlib
import hmac
import json
import os
import secrets
import signal
import sys
import time
from urllib.parse import parse_qs, urlsplit

KEY = secrets.token_bytes(32)
LIFETIME = float(os.environ.get("WAYBILL_TOKEN_LIFETIME", 1))


class Tokens:
    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        self.expired = collections.defaultdict(set)

    def sign(self, text):
        return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()[:32]

    def issue(self, run, lifetime):
        counts = self.counts[run]
        counts["issued"] += 1
        text = f"{run}.{counts['issued']}.{int(time.time() * 1000)}.{int(lifetime * 1000)}"
        return f"{text}.{self.sign(text)}"

    def is_good(self, token):
        text, _, signature = (token or "").rpartition(".")
        parts = text.split(".")
        counts = self.counts[parts[0]]
        if len(parts) != 4 or not hmac.compare_digest(signature.encode(), self.sign(text).encode()):
            counts["invalid"] += 1
            return False
        if time.time() * 1000 < int(parts[2]) + int(parts[3]):
            counts["accepted"] += 1
            return True
        counts["refused"] += 1
        self.expired[parts[0]].add(parts[1])
        return False

    def told(self, run):
        counts = {name: self.counts[run][name] for name in ("issued", "accepted", "refused", "invalid")}
        return {**counts, "expired": len(self.expired[run])}


TOKENS = Tokens()


def bearer(field):
    kind, _, token = field.partition(" ")
    return token if kind.lower() == "bearer" else ""


# Requests over HTTP.

def answer(path, query, fields):
    """Status and body."""
    if path == "/issue":
        return 200, TOKENS.issue(query.get("run", "none"), float(query.get("lifetime", LIFETIME)))
    if path == "/counts":
        return 200, json.dumps(TOKENS.told(query.get("run", "none")))
    if path == "/check":
        token = bearer(fields.get("authorization", ""))
        return 204 if token and TOKENS.is_good(token) else 401, ""
    if path == "/user":
        return 200, "allow" if TOKENS.is_good(query.get("password")) else "deny"
    if path in ("/vhost", "/resource", "/topic"):
        return 200, "allow"
    return 404, ""


REASONS = {200: "OK", 204: "No Content", 401: "Unauthorized", 404: "Not Found"}


async def serve(reader, writer):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = (await reader.readexactly(int(fields.get("content-length", 0)))).decode()
    parts = urlsplit(lines[0].split()[1])
    query = {name: values[0] for name, values in parse_qs(parts.query + "&" + body).items()}
    status, text = answer(parts.path, query, fields)
    # A response with 204 has no length (RFC 9110, 8.6).
    length = "" if status == 204 else f"Content-Length: {len(text)}\r\n"
    refusal = 'WWW-Authenticate: Bearer realm="waybill", error="invalid_token"\r\n' if status == 401 else ""
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\n{length}{refusal}Content-Type: text/plain\r\nConnection: close\r\n\r\n"
    writer.write((head + text).encode())
    await writer.drain()


# The gates.

def property_token(packet):
    """The user property `token` of a CONNECT without its fixed header (MQTT 5, 3.1.2.11)."""
    def number(at, size=2):
        return int.from_bytes(packet[at : at + size], "big")

    at = 2 + number(0)
    if packet[at] != 5:
        return None
    at += 4
    length, shift = 0, 0
    while True:
        length |= (packet[at] & 127) << shift
        shift += 7
        at += 1
        if packet[at - 1] < 128:
            break
    end = at + length
    while at < end:
        kind = packet[at]
        at += 1
        if kind == 0x26:
            name = packet[at + 2 : at + 2 + number(at)]
            at += 2 + number(at)
            value = packet[at + 2 : at + 2 + number(at)]
            at += 2 + number(at)
            if name == b"token":
                return value.decode()
        else:
            at += {0x11: 4, 0x27: 4, 0x21: 2, 0x22: 2, 0x17: 1, 0x19: 1}.get(kind) or 2 + number(at)
    return None


async def mqtt_connect(reader):
    """The first packet as it came, its token, and the refusal: not authorized."""
    head = await reader.readexactly(2)
    while head[-1] >= 128:
        head += await reader.readexactly(1)
    length = sum((byte & 127) << (7 * place) for place, byte in enumerate(head[1:]))
    packet = await reader.readexactly(length)
    return head + packet, property_token(packet), b"\x20\x03\x00\x87\x00"


async def stomp_connect(reader):
    """The first frame as it came, its token, and the refusal."""
    frame = await reader.readuntil(b"\0")
    pairs = (line.partition(":") for line in frame.decode().split("\n")[1:])
    fields = {name: value.strip() for name, _, value in pairs}
    return frame, bearer(fields.get("Authorization", "")), b"ERROR\nmessage:Bad CONNECT\n\nAccess refused\0"


async def relay(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def gate(first, port):
    async def pass_on(reader, writer):
        data, token, refusal = await first(reader)
        if not TOKENS.is_good(token):
            writer.write(refusal)
            await writer.drain()
            return
        inside, outside = await asyncio.open_connection("127.0.0.1", port)
        outside.write(data)
        await asyncio.gather(relay(reader, outside), relay(inside, writer))

    return pass_on


def guarded(body):
    async def handle(reader, writer):
        try:
            await body(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError):
            pass
        finally:
            writer.close()

    return handle


async def main(port, gate_port=None, mqtt_port=None, stomp_port=None):
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    bodies = {port: serve}
    if gate_port:
        bodies[gate_port] = gate(mqtt_connect, mqtt_port)
        bodies[gate_port + 1] = gate(stomp_connect, stomp_port)
    for number, body in bodies.items():
        await asyncio.start_server(guarded(body), "127.0.0.1", number)
    await ended.wait()


asyncio.run(main(*map(int, sys.argv[1:])))
