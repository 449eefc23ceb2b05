#!/usr/bin/env python3
"""Forwards connections to a port slowly, as a mobile network does: slow.py PORT TARGET BYTES_A_SECOND.

It reads no faster than it forwards, each way by itself, and keeps little in its sockets: what is too much waits at the
sender.
"""
import socket, sys, threading, time

PIECE = 0.02  # seconds


def forward(source, target, rate):
    try:
        while data := source.recv(max(int(rate * PIECE), 1)):
            target.sendall(data)
            time.sleep(len(data) / rate)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def small(connection):
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        connection.setsockopt(socket.SOL_SOCKET, option, 8192)
    return connection


def main(port, target, rate):
    listener = small(socket.socket())
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    while True:
        client, _ = listener.accept()
        server = small(socket.socket())
        server.connect(("127.0.0.1", target))
        for pair in ((client, server), (server, client)):
            threading.Thread(target=forward, args=(*pair, rate), daemon=True).start()


main(*map(int, sys.argv[1:4]))
