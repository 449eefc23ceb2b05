// The physical limit: a client that sends frames masked beforehand, discards what it reads, and waits for echoes.
//
//   websocket_raw PORT send|receive|echo COUNT SIZE        against websocket_sink
#include "measure.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
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

// Reads `count` bytes, in pieces of at most `size` bytes.
static void read_all(uint8_t *room, size_t size, size_t count) {
    while (count) {
        ssize_t n = read(fd, room, count < size ? count : size);
        if (n <= 0) exit(1);
        count -= n;
    }
}

static size_t frame(uint8_t *at, size_t size) {
    size_t n = 2;
    at[0] = 0x82;
    if (size < 126) at[1] = 0x80 | size;
    else if (size < 65536) at[1] = 0x80 | 126, at[2] = size >> 8, at[3] = size, n = 4;
    else {
        at[1] = 0x80 | 127;
        for (int i = 0; i < 8; i++) at[2 + i] = (uint64_t)size >> (56 - 8 * i);
        n = 10;
    }
    const uint8_t key[4] = {0x12, 0x34, 0x56, 0x78};
    memcpy(at + n, key, 4);
    n += 4;
    for (size_t i = 0; i < size; i++) at[n + i] = 'x' ^ key[i & 3];
    return n + size;
}

int main(int argc, char **argv) {
    enum { ROOM = 262144 };
    if (argc < 5) return 2;
    int one = 1, length;
    long count = atol(argv[3]), size = atol(argv[4]), batch = size < 32768 ? 65536 / (size + 14) : 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char text[512];
    uint8_t *room = malloc(ROOM), *frames = malloc((batch + 1) * (size + 14)), last = 0;
    int sending = !strcmp(argv[2], "send"), echoing = !strcmp(argv[2], "echo");
    count = sending ? count / batch * batch : count;
    length = snprintf(text, sizeof text, "GET /%s?count=%ld&size=%ld HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                      sending ? "sink" : echoing ? "echo" : "pour", count, size);
    send_all((uint8_t *)text, length);
    // The response to this key, which ends with an empty line.
    for (int ends = 0, seen = 0; ends < 2; seen++) {
        read_all(&last, 1, 1);
        if (seen < (int)sizeof text - 1) text[seen] = last, text[seen + 1] = 0;
        ends = last == '\n' ? ends + 1 : last == '\r' ? ends : 0;
    }
    if (strncmp(text, "HTTP/1.1 101 ", 13) || !strstr(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")) return 1;
    size_t one_frame = frame(frames, size), answer = one_frame - 4;
    if (sending) {
        for (long i = 1; i < batch; i++) memcpy(frames + i * one_frame, frames, one_frame);
        begin();
        for (long i = 0; i < count; i += batch) send_all(frames, batch * one_frame);
        read_all(room, ROOM, 6);
        finish("raw", count);
    } else if (echoing) {
        double *times = malloc(count * sizeof *times);
        begin();
        for (long i = 0; i < count; i++) {
            double start = wall_now();
            send_all(frames, one_frame);
            read_all(room, ROOM, answer);
            times[i] = wall_now() - start;
        }
        finish_round_trips("raw", times, count);
    } else {
        begin();
        send_all(frames, frame(frames, 1));
        read_all(room, ROOM, answer * count);
        finish("raw", count);
    }
    return 0;
}
