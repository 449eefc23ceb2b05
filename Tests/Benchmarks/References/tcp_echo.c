// The lower bound of every round trip: bytes over loopback TCP to a process that echoes them.
//
//   tcp_echo COUNT SIZE        both processes run where this one is pinned to
#include "measure.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/wait.h>
#include <unistd.h>

static char bytes[1 << 16];

static int write_all(int fd, size_t count) {
    for (size_t sent = 0; sent < count;) {
        ssize_t n = write(fd, bytes + sent, count - sent);
        if (n <= 0) return 1;
        sent += n;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    long count = atol(argv[1]), size = atol(argv[2]);
    if (size < 1 || size > (long)sizeof bytes) return 2;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    pid_t child = fork();
    if (child < 0) return 1;
    if (!child) {
        int fd = accept(listener, 0, 0);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
            if (write_all(fd, n)) return 1;
        return 0;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, length)) return 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    double *times = malloc(count * sizeof *times);
    begin();
    for (long i = 0; i < count; i++) {
        double start = wall_now();
        if (write_all(fd, size)) return 1;
        for (long got = 0; got < size;) {
            ssize_t n = read(fd, bytes, size - got);
            if (n <= 0) return 1;
            got += n;
        }
        times[i] = wall_now() - start;
    }
    finish_round_trips("tcp", times, count);
    close(fd);
    waitpid(child, 0, 0);
    return 0;
}
