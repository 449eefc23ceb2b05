"""Paho's round trips: publishes to a topic of its own, then waits for that message.

    mqtt_paho.py PORT QOS COUNT SIZE SUBSCRIBED

SUBSCRIBED is the quality of service of the subscription. The library from PyPI
(python3 -m venv FOLDER; FOLDER/bin/pip install paho-mqtt) or Debian's python3-paho-mqtt.
"""
import json
import queue
import sys
import time

import paho.mqtt.client as mqtt


def main():
    port, qos, count, size, subscribed = (int(word) for word in sys.argv[1:])
    if hasattr(mqtt, "CallbackAPIVersion"):
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv311)
    else:
        client = mqtt.Client(protocol=mqtt.MQTTv311)
    heard, ready = queue.Queue(), queue.Queue()
    client.on_connect = lambda *_: client.subscribe("turn/paho", subscribed)
    client.on_subscribe = lambda *_: ready.put(None)
    client.on_message = lambda *_: heard.put(None)
    client.connect("127.0.0.1", port)
    client.loop_start()
    ready.get(timeout=10)
    payload, times = b"x" * size, []
    began, processor = time.perf_counter(), time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        sent = client.publish("turn/paho", payload, qos)
        heard.get(timeout=10)
        sent.wait_for_publish(10)
        times.append((time.perf_counter() - start) * 1e6)
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    client.disconnect()
    client.loop_stop()
    times.sort()
    print(json.dumps({
        "job": "paho", "count": count, "cpu_us_per_message": processor / count * 1e6,
        "messages_per_second": count / seconds, "p50_us": times[count // 2], "p99_us": times[count * 99 // 100]}))


main()
