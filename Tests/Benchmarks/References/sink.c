// An MQTT server that acknowledges, sends and echoes at memory speed, so that a benchmark measures the client.
//
//   sink [ALIASES]  listens on a free port of 127.0.0.1, prints it, ends when standard input closes
//
// Knows CONNECT, PUBLISH of every quality, PUBACK, PUBREL, SUBSCRIBE (always granted), PINGREQ and DISCONNECT, of
// 3.1.1 and 5. Lets a client of MQTT 5 use so many topic aliases; none by default. Answers to all packets of one read leave in one write. Three topics are special:
//
//   SUBSCRIBE pour/QOS/COUNT/SIZE/WINDOW   is followed by so many messages, WINDOW of which may be unacknowledged;
//                                          their topics are numbers below SPREAD, if a sixth part names it
//   PUBLISH echo                           comes back with the same quality
//   SUBSCRIBE received/ONE-DIGIT           is followed by the number of bytes that the client has sent before it
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

struct client {
    int fd, v5;
    size_t have, room, out, out_room, received;
    uint8_t *in, *answer;
    // The messages that are still to be sent, and how many are unacknowledged.
    long left, window, unacknowledged, spread, number;
    int qos;
    size_t size;
    unsigned id;
};

// The topic aliases that a client may use.
static int aliases;

static void make_room(uint8_t **buffer, size_t *room, size_t wanted) {
    if (wanted <= *room) return;
    *room = wanted * 2;
    *buffer = realloc(*buffer, *room);
}

static void put(struct client *c, const uint8_t *bytes, size_t count) {
    make_room(&c->answer, &c->out_room, c->out + count);
    memcpy(c->answer + c->out, bytes, count);
    c->out += count;
}

static size_t put_length(uint8_t *at, size_t length) {
    size_t n = 0;
    do at[n++] = (length & 127) | (length > 127 ? 128 : 0);
    while (length >>= 7);
    return n;
}

// Appends the next message to the outgoing bytes.
static void pour(struct client *c) {
    char topic[24] = "pour";
    if (c->spread) snprintf(topic, sizeof topic, "t/%ld", c->number++ % c->spread);
    size_t name = strlen(topic), length = 2 + name + (c->qos ? 2 : 0) + (c->v5 ? 1 : 0) + c->size;
    uint8_t head[64] = {0x30 | c->qos << 1};
    size_t n = 1 + put_length(head + 1, length);
    head[n++] = 0, head[n++] = name;
    memcpy(head + n, topic, name);
    n += name;
    if (c->qos) {
        c->id = c->id % 65535 + 1;
        head[n++] = c->id >> 8, head[n++] = c->id;
        c->unacknowledged++;
    }
    if (c->v5) head[n++] = 0;
    put(c, head, n);
    make_room(&c->answer, &c->out_room, c->out + c->size);
    // JSON, for clients that decode it.
    memset(c->answer + c->out, 'x', c->size);
    if (c->size >= 8) memcpy(c->answer + c->out, "{\"a\":\"", 6), memcpy(c->answer + c->out + c->size - 2, "\"}", 2);
    c->out += c->size;
    c->left--;
}

// Appends a message that says how much the client has sent before the packet that is handled.
static void put_received(struct client *c, const char *topic) {
    char text[24];
    size_t digits = snprintf(text, sizeof text, "%zu", c->received), length = 2 + 10 + (c->v5 ? 1 : 0) + digits;
    put(c, (uint8_t[]){0x30, length, 0, 10}, 4);
    put(c, (const uint8_t *)topic, 10);
    if (c->v5) put(c, (uint8_t[]){0}, 1);
    put(c, (const uint8_t *)text, digits);
}

static void handle(struct client *c, const uint8_t *packet, size_t header, size_t length) {
    const uint8_t *body = packet + header;
    switch (packet[0] >> 4) {
    case 1:
        c->v5 = body[6] == 5;
        if (c->v5 && aliases) put(c, (uint8_t[]){0x20, 6, 0, 0, 3, 0x22, aliases >> 8, aliases}, 8);
        else put(c, (uint8_t[]){0x20, c->v5 ? 3 : 2, 0, 0, 0}, c->v5 ? 5 : 4);
        break;
    case 3: {
        int qos = packet[0] >> 1 & 3;
        const uint8_t *id = body + 2 + (body[0] << 8 | body[1]);
        if (qos) put(c, (uint8_t[]){qos == 1 ? 0x40 : 0x50, 2, id[0], id[1]}, 4);
        if (body[1] == 4 && !memcmp(body + 2, "echo", 4)) put(c, packet, header + length);
        break;
    }
    case 4:
        c->unacknowledged--;
        break;
    case 6:
        put(c, (uint8_t[]){0x70, 2, body[0], body[1]}, 4);
        break;
    case 8: {
        if (c->v5) put(c, (uint8_t[]){0x90, 4, body[0], body[1], 0, 0}, 6);
        else put(c, (uint8_t[]){0x90, 3, body[0], body[1], 0}, 5);
        const uint8_t *filter = body + (c->v5 ? 3 + body[2] : 2);
        char text[128] = "";
        size_t count = filter[0] << 8 | filter[1];
        if (count < sizeof text) memcpy(text, filter + 2, count);
        if (count == 10 && !memcmp(text, "received/", 9)) put_received(c, text);
        long number[5] = {0};
        if (sscanf(text, "pour/%ld/%ld/%ld/%ld/%ld", number, number + 1, number + 2, number + 3, number + 4) >= 4) {
            c->qos = number[0], c->left = number[1], c->size = number[2];
            c->window = number[3], c->spread = number[4], c->unacknowledged = c->number = 0;
        }
        break;
    }
    case 12:
        put(c, (uint8_t[]){0xD0, 0}, 2);
        break;
    }
}

// Writes all outgoing bytes before any other client is served. Returns nonzero when the client is gone.
static int flush(struct client *c) {
    for (size_t sent = 0; sent < c->out;) {
        ssize_t n = write(c->fd, c->answer + sent, c->out - sent);
        if (n <= 0) return 1;
        sent += n;
    }
    c->out = 0;
    return 0;
}

// Handles the complete packets at the front. Returns nonzero when the connection is to be closed.
static int receive(struct client *c) {
    make_room(&c->in, &c->room, c->have + 65536);
    ssize_t count = read(c->fd, c->in + c->have, c->room - c->have);
    if (count <= 0) return 1;
    c->have += count;
    size_t at = 0;
    while (c->have - at >= 2) {
        size_t length = 0, header = 1;
        uint8_t byte = 128;
        for (int shift = 0; header < 5 && at + header < c->have && byte > 127; shift += 7) {
            byte = c->in[at + header++];
            length |= (size_t)(byte & 127) << shift;
        }
        if (byte > 127 || c->have - at < header + length) break;
        if (c->in[at] >> 4 == 14) return 1;
        handle(c, c->in + at, header, length);
        c->received += header + length;
        at += header + length;
    }
    memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
    if (c->have == 0 && c->room > 1 << 17) {
        c->room = 0;
        free(c->in);
        c->in = NULL;
    }
    do {
        while (c->left && c->out < 65536 && (!c->qos || c->unacknowledged < c->window)) pour(c);
        if (flush(c)) return 1;
    } while (c->left && (!c->qos || c->unacknowledged < c->window));
    return 0;
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments > 1) aliases = atoi(arguments[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int epoll = epoll_create1(0);
    struct client input = {.fd = 0}, door = {.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &(struct epoll_event){EPOLLIN, {.ptr = &input}});
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &(struct epoll_event){EPOLLIN, {.ptr = &door}});
    struct epoll_event events[256];
    for (int count; (count = epoll_wait(epoll, events, 256, -1)) > 0;) {
        for (int i = 0; i < count; i++) {
            struct client *c = events[i].data.ptr;
            char byte;
            if (c == &input) {
                if (read(0, &byte, 1) <= 0) return 0;
            } else if (c == &door) {
                struct client *fresh = calloc(1, sizeof *fresh);
                fresh->fd = accept(listener, 0, 0);
                if (fresh->fd < 0) return 1;
                setsockopt(fresh->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(epoll, EPOLL_CTL_ADD, fresh->fd, &(struct epoll_event){EPOLLIN, {.ptr = fresh}});
            } else if (receive(c)) {
                close(c->fd);
                free(c->in);
                free(c->answer);
                free(c);
            }
        }
    }
    return 0;
}
