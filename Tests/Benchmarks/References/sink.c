// An MQTT server that acknowledges at memory speed, so that a benchmark measures the client.
//
//   sink            listens on a free port of 127.0.0.1, prints it, ends when standard input closes
//
// Knows CONNECT, PUBLISH of every quality, PUBREL, SUBSCRIBE (always granted), PINGREQ and DISCONNECT, of 3.1.1
// and 5. Answers to all packets of one read leave in one write.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 64, SIZE = 1 << 20 };

struct client {
    int fd, v5;
    size_t have, out;
    uint8_t *in, *answer;
};

static void put(struct client *c, const uint8_t *bytes, size_t count) {
    memcpy(c->answer + c->out, bytes, count);
    c->out += count;
}

static void handle(struct client *c, uint8_t first, const uint8_t *body) {
    switch (first >> 4) {
    case 1:
        c->v5 = body[6] == 5;
        put(c, (uint8_t[]){0x20, c->v5 ? 3 : 2, 0, 0, 0}, c->v5 ? 5 : 4);
        break;
    case 3: {
        int qos = first >> 1 & 3;
        const uint8_t *id = body + 2 + (body[0] << 8 | body[1]);
        if (qos) put(c, (uint8_t[]){qos == 1 ? 0x40 : 0x50, 2, id[0], id[1]}, 4);
        break;
    }
    case 6:
        put(c, (uint8_t[]){0x70, 2, body[0], body[1]}, 4);
        break;
    case 8:
        if (c->v5) put(c, (uint8_t[]){0x90, 4, body[0], body[1], 0, 0}, 6);
        else put(c, (uint8_t[]){0x90, 3, body[0], body[1], 0}, 5);
        break;
    case 12:
        put(c, (uint8_t[]){0xD0, 0}, 2);
        break;
    }
}

// Handles the whole packets at the front; nonzero when the client is to go.
static int receive(struct client *c) {
    ssize_t count = read(c->fd, c->in + c->have, SIZE - c->have);
    if (count <= 0) return 1;
    c->have += count;
    size_t at = 0;
    while (c->have - at >= 2) {
        size_t length = 0, header = 1;
        for (int shift = 0; header < 5 && at + header < c->have; shift += 7) {
            uint8_t byte = c->in[at + header++];
            length |= (size_t)(byte & 127) << shift;
            if (byte < 128) break;
        }
        if (c->have - at < header + length) break;
        if (c->in[at] >> 4 == 14) return 1;
        handle(c, c->in[at], c->in + at + header);
        at += header + length;
    }
    memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
    for (size_t sent = 0; sent < c->out;) {
        ssize_t n = write(c->fd, c->answer + sent, c->out - sent);
        if (n <= 0) return 1;
        sent += n;
    }
    c->out = 0;
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
    struct pollfd polls[CLIENTS + 2] = {{.fd = 0, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    struct client clients[CLIENTS + 2] = {0};
    int count = 2;
    while (poll(polls, count, -1) > 0) {
        char byte;
        if (polls[0].revents && read(0, &byte, 1) <= 0) return 0;
        if (polls[1].revents && count < CLIENTS + 2) {
            struct client *c = &clients[count];
            c->fd = accept(listener, 0, 0);
            setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            c->have = c->out = 0;
            if (!c->in) c->in = malloc(SIZE);
            if (!c->answer) c->answer = malloc(SIZE);
            polls[count++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        }
        for (int i = 2; i < count; i++) {
            if (!polls[i].revents || !receive(&clients[i])) continue;
            close(clients[i].fd);
            struct client gone = clients[i];
            clients[i] = clients[count - 1];
            clients[count - 1] = gone;
            polls[i] = polls[--count];
            i--;
        }
    }
    return 0;
}
