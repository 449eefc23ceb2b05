// The physical limit: a client that blasts packets encoded beforehand.
//
//   raw PORT QOS COUNT SIZE WINDOW
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

static size_t publish(uint8_t *at, int qos, unsigned id, size_t size) {
    size_t length = 2 + 1 + (qos ? 2 : 0) + size, n = 0;
    at[n++] = 0x30 | qos << 1;
    do at[n++] = (length & 127) | (length > 127 ? 128 : 0);
    while (length >>= 7);
    at[n++] = 0, at[n++] = 1, at[n++] = 't';
    if (qos) at[n++] = id >> 8, at[n++] = id;
    memset(at + n, 'x', size);
    return n + size;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int qos = atoi(argv[2]), one = 1;
    long count = atol(argv[3]), size = atol(argv[4]), window = atol(argv[5]);
    if (!qos) window = 65536 / (size + 8);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    uint8_t *batch = malloc(window * (size + 16)), *acks = malloc(window * 4), *rel = malloc(window * 4);
    send_all((uint8_t *)"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1r", 15);
    read_all(acks, 4);
    size_t length = 0;
    for (long i = 0; i < window; i++) {
        length += publish(batch + length, qos, i + 1, size);
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
    return 0;
}
