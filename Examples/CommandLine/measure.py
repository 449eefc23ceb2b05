#!/usr/bin/env python3
"""Sends a file's lines through a broker, and prints time, memory and processor time of both programs.

    measure.py NAME LINES OUTPUT -- SUBSCRIBER ... -- PUBLISHER ...

The subscriber writes to OUTPUT, and ends by itself. It subscribes to a topic with the retained message `ready`, too,
after which the publisher is started with LINES as its standard input. The time is from there to the subscriber's end.
"""
import os
import sys
import time


def start(command, reading, writing):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(reading, os.O_RDONLY), 0)
        os.dup2(os.open(writing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.execvp(command[0], command)
    return child


def main():
    name, lines, output = sys.argv[1:4]
    rest = sys.argv[5:]
    cut = rest.index("--")
    subscriber, publisher = rest[:cut], rest[cut + 1:]
    if os.path.exists(output):
        os.unlink(output)
    receiving = start(subscriber, "/dev/null", output)
    while not os.path.exists(output) or os.path.getsize(output) < len("ready\n"):
        time.sleep(0.02)
    begin = time.monotonic()
    sending = start(publisher, lines, "/dev/null")
    usage = {}
    ended = {}
    while len(usage) < 2:
        child, status, used = os.wait3(0)
        usage[child] = (status, used)
        ended[child] = time.monotonic() - begin
    parts = []
    for role, child in (("pub", sending), ("sub", receiving)):
        status, used = usage[child]
        processor = used.ru_utime + used.ru_stime
        parts.append(f"{role} {ended[child]:.2f} s, {processor:.2f} s CPU, {used.ru_maxrss // 1024} MB")
        if status != 0:
            parts.append(f"status {status}")
    print(f"{name:48} {'; '.join(parts)}")


main()
