// The least work for a client of an event stream: read the bytes and count the blank lines. P12 is compared with it.
//
//   event_stream_scan PORT COUNT SIZE CHUNKED
#define _GNU_SOURCE
#include "measure.h"
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 5) return 2;
    static char room[1 << 16], request[256];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 1;
    int length = snprintf(request, sizeof request, "GET /pour?count=%s&size=%s&chunked=%s HTTP/1.1\r\nHost: h\r\n\r\n",
                          arguments[2], arguments[3], arguments[4]);
    begin();
    if (write(fd, request, length) != length) return 1;
    long events = 0, wanted = atol(arguments[2]);
    int line_is_empty = 0;
    ssize_t n;
    while (events < wanted && (n = read(fd, room, sizeof room)) > 0) {
        for (char *at = room, *end = room + n, *next; (next = memchr(at, '\n', end - at)); at = next + 1, line_is_empty = 1)
            if (line_is_empty && next == at) events++;
        line_is_empty = room[n - 1] == '\n';
    }
    finish("C newline scan", events);
    return events != wanted;
}
