#ifdef __linux__
#define _GNU_SOURCE
#include "CWaybillLinux.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

// The layout the kernel expects on every architecture, whatever the C library's time_t is.
struct kernel_timespec {
    int64_t seconds;
    int64_t nanoseconds;
};

int waybill_epoll_wait(int epfd, struct epoll_event *events, int capacity, int64_t timeout_ns) {
    static atomic_bool lacks_pwait2;
    if (timeout_ns <= 0) {
        return epoll_wait(epfd, events, capacity, timeout_ns < 0 ? -1 : 0);
    }
    if (!atomic_load_explicit(&lacks_pwait2, memory_order_relaxed)) {
        struct kernel_timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
        int count = (int)syscall(SYS_epoll_pwait2, epfd, events, capacity, &timeout, NULL, 0);
        // Old kernels answer ENOSYS, some container filters EPERM.
        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return count;
        }
        atomic_store_explicit(&lacks_pwait2, 1, memory_order_relaxed);
    }
    int64_t milliseconds = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return epoll_wait(epfd, events, capacity, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
}

int waybill_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int waybill_unacknowledged(int descriptor) {
    int count = 0;
    return ioctl(descriptor, TIOCOUTQ, &count) == 0 ? count : -1;
}

void waybill_prepare_thread(const char *name, uint64_t timer_slack) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
}
#endif
