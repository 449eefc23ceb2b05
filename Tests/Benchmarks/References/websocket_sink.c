// A WebSocket server that works at memory speed, so that a benchmark measures the client.
//
//   websocket_sink      listens on a free port of 127.0.0.1, prints it, ends when standard input closes
//
// The path of the upgrade selects the behaviour:
//
//   /sink?count=N            discards messages, and after each N of them sends the text `done`
//   /pour?count=N&size=S     sends N binary messages of S bytes for each message that arrives
//   /echo                    sends every frame back; answers to all frames of one read leave in one write
//
// Answers pings and the close frame, selects no extension and no subprotocol, and checks nothing else.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20, HEADER = 14 };

struct client {
    int fd;
    long count, size, seen;
    enum { SINK, POUR, ECHO } mode;
    size_t have, out;
    uint8_t *in, *answer;
};

// SHA-1 of a short text, which is padded in place (RFC 3174).
static void sha1(const char *text, uint8_t digest[20]) {
    uint8_t block[128] = {0};
    size_t length = strlen(text), blocks = (length + 8) / 64 + 1;
    uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}, w[80];
    memcpy(block, text, length);
    block[length] = 0x80;
    block[blocks * 64 - 2] = length * 8 >> 8;
    block[blocks * 64 - 1] = length * 8;
    for (size_t at = 0; at < blocks * 64; at += 64) {
        uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
        for (int i = 0; i < 80; i++) {
            const uint8_t *p = block + at + 4 * i;
            uint32_t x = i < 16 ? 0 : w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16];
            w[i] = i < 16 ? (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3] : x << 1 | x >> 31;
            uint32_t f = i < 20 ? ((b & c) | (~b & d)) + 0x5A827999 : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                       : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC : (b ^ c ^ d) + 0xCA62C1D6;
            uint32_t next = (a << 5 | a >> 27) + f + e + w[i];
            e = d, d = c, c = b << 30 | b >> 2, b = a, a = next;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
    for (int i = 0; i < 20; i++) digest[i] = h[i / 4] >> (24 - i % 4 * 8);
}

static void base64(const uint8_t digest[20], char text[29]) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 27; i++) {
        int bit = i * 6, at = bit / 8;
        unsigned pair = digest[at] << 8 | (at < 19 ? digest[at + 1] : 0);
        text[i] = letters[pair >> (10 - bit % 8) & 63];
    }
    text[27] = '=', text[28] = 0;
}

static int send_all(int fd, const uint8_t *bytes, size_t count) {
    while (count) {
        ssize_t n = write(fd, bytes, count);
        if (n <= 0) return 1;
        bytes += n;
        count -= n;
    }
    return 0;
}

static size_t header(uint8_t *at, uint8_t first, size_t size) {
    at[0] = first;
    if (size < 126) return at[1] = size, 2;
    if (size < 65536) return at[1] = 126, at[2] = size >> 8, at[3] = size, 4;
    at[1] = 127;
    for (int i = 0; i < 8; i++) at[2 + i] = (uint64_t)size >> (56 - 8 * i);
    return 10;
}

static int answer(struct client *c, uint8_t first, const uint8_t *bytes, size_t size, const uint8_t *key) {
    if (c->out + size + HEADER > SIZE) {
        if (send_all(c->fd, c->answer, c->out)) return 1;
        c->out = 0;
    }
    c->out += header(c->answer + c->out, first, size);
    uint8_t *to = c->answer + c->out, long_key[8];
    for (int i = 0; i < 8; i++) long_key[i] = key ? key[i & 3] : 0;
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word, mask;
        memcpy(&word, bytes + at, 8);
        memcpy(&mask, long_key, 8);
        word ^= mask;
        memcpy(to + at, &word, 8);
    }
    for (; at < size; at++) to[at] = bytes[at] ^ long_key[at & 7];
    c->out += size;
    return 0;
}

static int pour(struct client *c) {
    size_t frame = c->size + header((uint8_t[HEADER]){0}, 0, c->size), batch = frame < 65536 ? 262144 / frame : 4;
    uint8_t *frames = calloc(batch, frame);
    for (size_t i = 0; i < batch; i++) header(frames + i * frame, 0x82, c->size);
    int failed = 0;
    for (long left = c->count; left > 0 && !failed; left -= batch)
        failed = send_all(c->fd, frames, frame * ((size_t)left < batch ? (size_t)left : batch));
    free(frames);
    return failed;
}

// Handles a whole frame, or in the mode SINK the head of one. Returns nonzero when the connection is to be closed.
static int handle(struct client *c, uint8_t first, const uint8_t *bytes, size_t size, const uint8_t *key) {
    int opcode = first & 15;
    if (opcode == 8) return answer(c, 0x88, bytes, size, key) | 1;
    if (opcode == 9) return answer(c, 0x8A, bytes, size, key);
    if (opcode == 10) return 0;
    if (c->mode == ECHO) return answer(c, first, bytes, size, key);
    if (!(first & 0x80)) return 0;
    if (c->mode == POUR) return pour(c);
    if (++c->seen < c->count) return 0;
    c->seen = 0;
    return answer(c, 0x81, (const uint8_t *)"done", 4, 0);
}

// Answers the upgrade. Returns nonzero when the request is not an upgrade.
static int upgrade(struct client *c) {
    char *end, *text = (char *)c->in, joined[128], line[256], *key;
    do {
        ssize_t n = read(c->fd, c->in + c->have, SIZE - 1 - c->have);
        if (n <= 0) return 1;
        c->have += n;
        c->in[c->have] = 0;
    } while (!(end = strstr(text, "\r\n\r\n")));
    *end = 0;
    char *number;
    c->mode = strstr(text, "GET /echo") == text ? ECHO : strstr(text, "GET /pour") == text ? POUR : SINK;
    c->count = (number = strstr(text, "count=")) ? atol(number + 6) : 1;
    c->size = (number = strstr(text, "size=")) ? atol(number + 5) : 256;
    if (!(key = strcasestr(text, "\r\nsec-websocket-key:"))) return 1;
    key += 20;
    key += strspn(key, " ");
    snprintf(joined, sizeof joined, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    uint8_t digest[20];
    char accept[29];
    sha1(joined, digest);
    base64(digest, accept);
    int length = snprintf(line, sizeof line, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %s\r\n\r\n", accept);
    size_t used = end + 4 - text;
    memmove(c->in, c->in + used, c->have - used);
    c->have -= used;
    return send_all(c->fd, (uint8_t *)line, length);
}

static void *serve(void *argument) {
    struct client *c = argument;
    size_t skip = 0;
    for (int gone = upgrade(c); !gone;) {
        size_t at = 0;
        while (!gone && c->have - at >= 2) {
            const uint8_t *p = c->in + at;
            uint64_t size = p[1] & 127;
            size_t head = 2 + (size == 126 ? 2 : size == 127 ? 8 : 0);
            if (c->have - at < head + 4) break;
            if (size == 126) size = p[2] << 8 | p[3];
            else if (size == 127) for (int i = size = 0; i < 8; i++) size = size << 8 | p[2 + i];
            const uint8_t *key = p[1] & 128 ? p + head : 0;
            if (key) head += 4;
            if (c->have - at < head + size) {
                // A data frame that is discarded need not be complete in the buffer.
                if (c->mode == ECHO || (p[0] & 8)) {
                    if (head + size > SIZE) gone = 1;
                    break;
                }
                skip = head + size - (c->have - at);
                size = c->have - at - head;
            }
            gone |= handle(c, p[0], p + head, size, key);
            at += head + size;
        }
        memmove(c->in, c->in + at, c->have - at);
        c->have -= at;
        ssize_t n;
        for (; skip; skip -= n)
            if ((n = read(c->fd, c->in, skip < SIZE ? skip : SIZE)) <= 0) break;
        if (skip || (c->out && send_all(c->fd, c->answer, c->out)) || gone) break;
        c->out = 0;
        if ((n = read(c->fd, c->in + c->have, SIZE - c->have)) <= 0) break;
        c->have += n;
    }
    close(c->fd);
    free(c->in);
    free(c->answer);
    free(c);
    return 0;
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct pollfd polls[2] = {{.fd = 0, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    while (poll(polls, 2, -1) > 0) {
        char byte;
        if (polls[0].revents && read(0, &byte, 1) <= 0) return 0;
        if (!polls[1].revents) continue;
        struct client *c = calloc(1, sizeof *c);
        c->fd = accept(listener, 0, 0);
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c->in = malloc(SIZE);
        c->answer = malloc(SIZE);
        pthread_t thread;
        if (c->fd < 0 || pthread_create(&thread, 0, serve, c)) return 1;
        pthread_detach(thread);
    }
    return 0;
}
