// The system calls that the event loop needs and Glibc's module map lacks.
#ifndef CWAYBILLLINUX_H
#define CWAYBILLLINUX_H

#ifdef __linux__
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/// Waits for events.
///
/// timeout_ns: nanoseconds; negative waits for ever. Where the kernel lacks epoll_pwait2 (Linux 5.11)
/// the timeout is rounded up to milliseconds. Returns as epoll_wait does, with errno set.
int waybill_epoll_wait(int epfd, struct epoll_event *events, int capacity, int64_t timeout_ns);

/// Accepts a connection as a non-blocking descriptor that child processes do not inherit.
/// Returns it, or -1 with errno set.
int waybill_accept(int listener);

/// The number of bytes in a socket's send queue that the peer has not acknowledged (SIOCOUTQ, tcp(7)).
/// Returns it, or -1 with errno set.
int waybill_unacknowledged(int descriptor);

/// Names the calling thread (15 characters at the most) and sets how much later than asked its timers may
/// fire, in nanoseconds.
void waybill_prepare_thread(const char *name, uint64_t timer_slack);
#endif

#endif
