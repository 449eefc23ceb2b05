// A server of event streams that sends at memory speed, so that a benchmark measures the client.
//
//   event_stream_sink [ROOM]   listens on a free port of 127.0.0.1, prints it, ends when standard input closes; the
//                              kernel keeps so many unsent bytes, by default a number that changes with the speed
//
//   /pour?count=N&size=S&chunked=0|1     N events with S bytes of data each, with ids from 10000000 on; as one body
//                                        until the connection closes, or each event as a chunk of its own
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

enum { ROOM = 1 << 18, DIGITS = 8 };

static int send_all(int fd, const char *bytes, size_t count) {
    while (count) {
        ssize_t n = write(fd, bytes, count);
        if (n <= 0) return 1;
        bytes += n;
        count -= n;
    }
    return 0;
}

static void pour(int fd, long count, long size, int chunked) {
    char head[256];
    int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n",
                          chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n");
    // The events of a batch differ only in their ids, which are rewritten for each batch.
    char *batch = malloc(ROOM + size + 256), *event = malloc(size + 256);
    size_t body = 4 + DIGITS + 1 + 6 + size + 2, before = chunked ? sprintf(event, "%zx\r\n", body) : 0, one = before;
    one += sprintf(event + one, "id: %0*d\ndata: ", DIGITS, 0);
    memset(event + one, 'x', size);
    // JSON, like the payload of MQTT's sink.
    if (size > 8) memcpy(event + one, "{\"a\":\"", 6), memcpy(event + one + size - 2, "\"}", 2);
    one += size;
    one += sprintf(event + one, chunked ? "\n\n\r\n" : "\n\n");
    long in_batch = ROOM / one ? ROOM / one : 1;
    for (long i = 0; i < in_batch; i++) memcpy(batch + i * one, event, one);
    int failed = send_all(fd, head, length);
    for (long sent = 0; sent < count && !failed; sent += in_batch) {
        long now = count - sent < in_batch ? count - sent : in_batch;
        for (long i = 0; i < now; i++) {
            long number = 10000000 + sent + i;
            for (char *at = batch + i * one + before + 4 + DIGITS; number; number /= 10) *--at = '0' + number % 10;
        }
        failed = send_all(fd, batch, now * one);
    }
    if (chunked && !failed) send_all(fd, "0\r\n\r\n", 5);
    free(batch);
    free(event);
}

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    char request[8192], *number;
    size_t have = 0;
    request[0] = 0;
    while (!strstr(request, "\r\n\r\n")) {
        ssize_t n = read(fd, request + have, sizeof request - 1 - have);
        if (n <= 0) break;
        have += n;
        request[have] = 0;
    }
    long count = (number = strstr(request, "count=")) ? atol(number + 6) : 1;
    long size = (number = strstr(request, "size=")) ? atol(number + 5) : 100;
    pour(fd, count, size, strstr(request, "chunked=1") != 0);
    shutdown(fd, SHUT_WR);
    while (read(fd, request, sizeof request) > 0) {}
    close(fd);
    return 0;
}

int main(int count_of_arguments, char **arguments) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int room = count_of_arguments > 1 ? atoi(arguments[1]) : 0;
    if (room) setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct pollfd polls[2] = {{.fd = 0, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    while (poll(polls, 2, -1) > 0) {
        char byte;
        if (polls[0].revents && read(0, &byte, 1) <= 0) return 0;
        if (!polls[1].revents) continue;
        int fd = accept(listener, 0, 0);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pthread_t thread;
        if (fd < 0 || pthread_create(&thread, 0, serve, (void *)(intptr_t)fd)) return 1;
        pthread_detach(thread);
    }
    return 0;
}
