"""Python's `websockets` with the jobs of websocket_raw, in its fastest form: asyncio, no compression.

    websocket_python.py PORT send|receive|echo COUNT SIZE        against websocket_sink

Prints what measure.h prints. The library from PyPI (python3 -m venv FOLDER; FOLDER/bin/pip install websockets) or
Debian's python3-websockets.
"""
import asyncio
import json
import sys
import time

import websockets

try:
    from websockets.asyncio.client import connect
except ImportError:
    from websockets import connect


async def send(peer, count, size):
    message = b"x" * size
    for _ in range(count):
        await peer.send(message)
    await peer.recv()


async def receive(peer, count, size):
    await peer.send(b"x")
    for _ in range(count):
        await peer.recv()


async def echo(peer, count, size):
    message, times = b"x" * size, []
    for _ in range(count):
        start = time.perf_counter()
        await peer.send(message)
        await peer.recv()
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    return {"p50_us": round(times[count // 2], 2), "p99_us": round(times[count * 99 // 100], 2)}


async def main(port, job, count, size):
    place = {"send": "sink", "receive": "pour", "echo": "echo"}[job]
    url = f"ws://127.0.0.1:{port}/{place}?count={count}&size={size}"
    async with connect(url, compression=None, max_size=None, ping_interval=None) as peer:
        cpu, wall = time.process_time(), time.perf_counter()
        more = await {"send": send, "receive": receive, "echo": echo}[job](peer, count, size)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        result = {
            "job": "python websockets",
            "count": count,
            "cpu_us_per_message": round(cpu * 1e6 / count, 4),
            "messages_per_second": round(count / wall),
        }
        print(json.dumps({**result, **(more or {}), "version": websockets.__version__}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
