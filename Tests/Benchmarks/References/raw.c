// The physical limit: a client that sends packets encoded beforehand, counts bytes, and makes bare round trips.
//
//   raw publish PORT QOS COUNT SIZE WINDOW
//   raw receive PORT QOS COUNT SIZE WINDOW
//   raw echo PORT QOS COUNT SIZE
#include "measure.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;

static void send_all(const uint8_t *bytes, size_t count) {
    while (count) {
        ssize_t n = write(fd, bytes, count);
        if (n <= 0) exit(1);
        bytes += n;
        count -= n;
    }
}

static void read_all(uint8_t *bytes, size_t count) {
    while (count) {
        ssize_t n = read(fd, bytes, count);
        if (n <= 0) exit(1);
        bytes += n;
        count -= n;
    }
}

static size_t publish(uint8_t *at, const char *topic, int qos, unsigned id, size_t size) {
    size_t name = strlen(topic), length = 2 + name + (qos ? 2 : 0) + size, n = 0;
    at[n++] = 0x30 | qos << 1;
    do at[n++] = (length & 127) | (length > 127 ? 128 : 0);
    while (length >>= 7);
    at[n++] = 0, at[n++] = name;
    memcpy(at + n, topic, name);
    n += name;
    if (qos) at[n++] = id >> 8, at[n++] = id;
    memset(at + n, 'x', size);
    return n + size;
}

static void subscribe(const char *filter, int qos) {
    size_t name = strlen(filter);
    uint8_t packet[128] = {0x82, 5 + name, 0, 1, 0, name}, answer[5];
    memcpy(packet + 6, filter, name);
    packet[6 + name] = qos;
    send_all(packet, 7 + name);
    read_all(answer, 5);
}

static void blast(int qos, long count, long size, long window) {
    if (!qos) window = size > 32768 ? 1 : 65536 / (size + 8);
    uint8_t *batch = malloc(window * (size + 16)), *acks = malloc(window * 4), *rel = malloc(window * 4);
    size_t length = 0;
    for (long i = 0; i < window; i++) {
        length += publish(batch + length, "t", qos, i + 1, size);
        memcpy(rel + 4 * i, (uint8_t[]){0x62, 2, (i + 1) >> 8, i + 1}, 4);
    }
    begin();
    long rounds = count / window;
    for (long i = 0; i < rounds; i++) {
        send_all(batch, length);
        if (qos) read_all(acks, 4 * window);
        if (qos == 2) send_all(rel, 4 * window), read_all(acks, 4 * window);
    }
    send_all((uint8_t *)"\x32\x05\0\1t\0\1", 7);
    read_all(acks, 4);
    finish("raw", rounds * window);
}

// Counts bytes. With QoS 1 it acknowledges whole messages without reading their identifiers.
static void drain(int qos, long count, long size, long window) {
    char filter[64];
    uint8_t *space = malloc((1 << 18) + size), *acks = malloc(4 * window);
    snprintf(filter, sizeof filter, "pour/%d/%ld/%ld/%ld", qos, count, size, window);
    long each = publish(space, "pour", qos, 1, size), got = 0, acknowledged = 0;
    for (long i = 0; i < window; i++) memcpy(acks + 4 * i, (uint8_t[]){0x40, 2, 0, 1}, 4);
    begin();
    subscribe(filter, qos);
    while (got < each * count) {
        ssize_t n = read(fd, space, 1 << 18);
        if (n <= 0) exit(1);
        got += n;
        if (!qos || got / each == acknowledged) continue;
        send_all(acks, 4 * (got / each - acknowledged));
        acknowledged = got / each;
    }
    finish("raw", count);
}

static void echo(int qos, long count, long size) {
    uint8_t *packet = malloc(size + 16), *answer = malloc(size + 32);
    size_t length = publish(packet, "echo", qos, 1, size);
    double *times = malloc(count * sizeof *times);
    subscribe("echo", qos);
    begin();
    for (long i = 0; i < count; i++) {
        double start = wall_now();
        send_all(packet, length);
        read_all(answer, length + (qos ? 4 : 0));
        if (qos) send_all((uint8_t *)"\x40\2\0\1", 4);
        times[i] = wall_now() - start;
    }
    finish_round_trips("raw", times, count);
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int qos = atoi(argv[3]), one = 1;
    long count = atol(argv[4]), size = atol(argv[5]), window = argc > 6 ? atol(argv[6]) : 100;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    uint8_t answer[4];
    send_all((uint8_t *)"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1r", 15);
    read_all(answer, 4);
    if (!strcmp(argv[1], "publish")) blast(qos, count, size, window);
    else if (!strcmp(argv[1], "receive")) drain(qos, count, size, window);
    else echo(qos, count, size);
    return 0;
}
