#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "CWaybillSimulation.h"

// The sanitizers stand between a program and its C library themselves.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define WAYBILL_SANITIZED
#endif
#endif

#if defined(__linux__) && !defined(WAYBILL_SANITIZED)

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/// What one thread simulates.
static __thread struct {
    const void *world;
    int64_t now;
    uint64_t random;
    uint32_t refused;
} simulated;

static int is_available;

/// Where the monotonic clocks of a world begin: some days after the machine did.
static const int64_t monotonic_origin = 1000000000000000;
/// Where the calendar of a world begins: 2026-01-01T00:00:00Z.
static const int64_t calendar_origin = 1767225600000000000;

void waybill_simulation_enter(const void *world, int64_t now, uint64_t seed) {
    simulated.world = world;
    simulated.now = now;
    simulated.random = seed;
    simulated.refused = 0;
}

int waybill_simulation_count_worlds(int change) {
    static atomic_int count;
    return atomic_fetch_add_explicit(&count, change, memory_order_relaxed) + change;
}

void waybill_simulation_leave(void) { simulated.world = NULL; }
const void *waybill_simulation_world(void) { return simulated.world; }
void waybill_simulation_set_now(int64_t now) { simulated.now = now; }
int waybill_simulation_is_available(void) { return is_available; }

uint32_t waybill_simulation_take_refused(void) {
    uint32_t refused = simulated.refused;
    simulated.refused = 0;
    return refused;
}

// The next function of a name in the order of libraries, which is the system's.
#define SYSTEM(name)                                                                  \
    static __typeof__(&name) system_##name;                                           \
    if (!system_##name) system_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int64_t waybill_simulation_real_now(void) {
    SYSTEM(clock_gettime);
    struct timespec time;
    system_clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// The functions below have the names of the C library's. A program's own come first when a library looks for them, so
// Swift's clocks, Foundation's dates and Swift's random numbers follow the world of the thread.

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
    SYSTEM(clock_gettime);
    // Processor time stays what it is.
    if (!simulated.world || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        return system_clock_gettime(clock, time);
    int is_calendar = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    int64_t now = simulated.now + (is_calendar ? calendar_origin : monotonic_origin);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

// The older ways to ask for the calendar's time, which do not go through the function above.

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    static int (*system_gettimeofday)(struct timeval *restrict, void *restrict);
    if (!system_gettimeofday)
        system_gettimeofday = (int (*)(struct timeval *restrict, void *restrict))dlsym(RTLD_NEXT, "gettimeofday");
    if (!simulated.world) return system_gettimeofday(time, zone);
    int64_t now = simulated.now + calendar_origin;
    time->tv_sec = now / 1000000000;
    time->tv_usec = now % 1000000000 / 1000;
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *result) {
    static time_t (*system_time)(time_t *);
    if (!system_time) system_time = (time_t (*)(time_t *))dlsym(RTLD_NEXT, "time");
    if (!simulated.world) return system_time(result);
    time_t now = (simulated.now + calendar_origin) / 1000000000;
    if (result) *result = now;
    return now;
}

static void fill(void *buffer, size_t count) {
    unsigned char *bytes = buffer;
    for (size_t index = 0; index < count; index++) {
        // A linear congruential step; the high bits are the good ones.
        simulated.random = simulated.random * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[index] = (unsigned char)(simulated.random >> 56);
    }
}

__attribute__((visibility("default"))) ssize_t getrandom(void *buffer, size_t count, unsigned int flags) {
    static ssize_t (*system_getrandom)(void *, size_t, unsigned int);
    if (!system_getrandom)
        system_getrandom = (ssize_t (*)(void *, size_t, unsigned int))dlsym(RTLD_NEXT, "getrandom");
    if (!simulated.world) return system_getrandom(buffer, count, flags);
    fill(buffer, count);
    return (ssize_t)count;
}

__attribute__((visibility("default"))) int getentropy(void *buffer, size_t count) {
    static int (*system_getentropy)(void *, size_t);
    if (!system_getentropy) system_getentropy = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "getentropy");
    if (!simulated.world) return system_getentropy(buffer, count);
    fill(buffer, count);
    return 0;
}

// How Swift's library asks for random numbers.
__attribute__((visibility("default"))) long syscall(long number, ...) {
    SYSTEM(syscall);
    va_list list;
    va_start(list, number);
    long arguments[6];
    // As many as any system call has; those that the caller did not give are never looked at.
    for (int index = 0; index < 6; index++) arguments[index] = va_arg(list, long);
    va_end(list);
    if (simulated.world && number == SYS_getrandom) {
        fill((void *)arguments[0], (size_t)arguments[1]);
        return arguments[1];
    }
    return system_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

// Where Foundation's UUIDs read their bytes. They open it, read and close it each time.
static int is_random_device(const char *path) {
    return path && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

// A file in memory with bytes of the world's.
static int open_random(void) {
    unsigned char bytes[4096];
    fill(bytes, sizeof(bytes));
    int descriptor = memfd_create("random", MFD_CLOEXEC);
    if (descriptor < 0) return -1;
    if (write(descriptor, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) || lseek(descriptor, 0, SEEK_SET) != 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

#define OPEN(name)                                                                            \
    __attribute__((visibility("default"))) int name(const char *path, int flags, ...) {       \
        static int (*system_##name)(const char *, int, ...);                                  \
        if (!system_##name) system_##name = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        if (simulated.world && is_random_device(path)) return open_random();                  \
        mode_t mode = 0;                                                                      \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                  \
            va_list list;                                                                     \
            va_start(list, flags);                                                            \
            mode = va_arg(list, mode_t);                                                      \
            va_end(list);                                                                     \
        }                                                                                     \
        return system_##name(path, flags, mode);                                              \
    }

OPEN(open)
OPEN(open64)

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol) {
    SYSTEM(socket);
    if (!simulated.world) return system_socket(domain, type, protocol);
    simulated.refused |= WAYBILL_REFUSED_SOCKET;
    errno = EACCES;
    return -1;
}

// Time passes for a thread that was to sleep, which might else try again for ever; the run fails.
static void refuse_sleep(int64_t nanoseconds) {
    simulated.refused |= WAYBILL_REFUSED_SLEEP;
    if (nanoseconds > 0) simulated.now += nanoseconds;
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * 1000000000LL + time->tv_nsec; }

__attribute__((visibility("default"))) int nanosleep(const struct timespec *time, struct timespec *rest) {
    SYSTEM(nanosleep);
    if (!simulated.world) return system_nanosleep(time, rest);
    refuse_sleep(nanoseconds(time));
    return 0;
}

__attribute__((visibility("default"))) int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    SYSTEM(clock_nanosleep);
    if (!simulated.world) return system_clock_nanosleep(clock, flags, time, rest);
    struct timespec now = {0, 0};
    if (flags & TIMER_ABSTIME) clock_gettime(clock, &now);
    refuse_sleep(nanoseconds(time) - nanoseconds(&now));
    return 0;
}

__attribute__((visibility("default"))) int usleep(useconds_t microseconds) {
    SYSTEM(usleep);
    if (!simulated.world) return system_usleep(microseconds);
    refuse_sleep(microseconds * 1000LL);
    return 0;
}

__attribute__((visibility("default"))) unsigned int sleep(unsigned int seconds) {
    SYSTEM(sleep);
    if (!simulated.world) return system_sleep(seconds);
    refuse_sleep(seconds * 1000000000LL);
    return 0;
}

// Swift's runtime has it, under Swift's calling convention.
__attribute__((swiftcall)) extern uint64_t swift_task_getJobTaskId(const void *job);

uint64_t waybill_simulation_task(const void *job) { return swift_task_getJobTaskId(job); }

// Swift's own parameters of hashing, as its library lays them out.
struct hashing_parameters {
    uint64_t seed0;
    uint64_t seed1;
    _Bool is_deterministic;
};

// In Swift: puts the executors in place that keep a world's jobs in it. A toolchain before 6.3 has no such function.
__attribute__((weak)) extern void waybill_simulation_install_executors(void);

// Before the first task and the first hash: afterwards either could not be changed any more.
__attribute__((constructor)) static void install(void) {
    const char *wish = getenv("WAYBILL_SIMULATION");
    if (wish && strcmp(wish, "off") == 0) return;
    if (!waybill_simulation_install_executors) return;
    // As the environment variable SWIFT_DETERMINISTIC_HASHING does, which would have to be set before.
    struct hashing_parameters *hashing = dlsym(RTLD_DEFAULT, "_swift_stdlib_Hashing_parameters");
    if (hashing) *hashing = (struct hashing_parameters){0, 0, 1};
    waybill_simulation_install_executors();
    is_available = 1;
}

#else

void waybill_simulation_enter(const void *world, int64_t now, uint64_t seed) {}
void waybill_simulation_leave(void) {}
int waybill_simulation_count_worlds(int change) { return 0; }
const void *waybill_simulation_world(void) { return 0; }
void waybill_simulation_set_now(int64_t now) {}
int waybill_simulation_is_available(void) { return 0; }
uint32_t waybill_simulation_take_refused(void) { return 0; }
int64_t waybill_simulation_real_now(void) { return 0; }
uint64_t waybill_simulation_task(const void *job) { return 0; }

#endif
