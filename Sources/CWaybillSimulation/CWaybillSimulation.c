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

// Only with glibc, where a function of the program's own is found before the C library's, and the C library's after it.
#if defined(__linux__) && defined(__GLIBC__) && !defined(WAYBILL_SANITIZED) \
    && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
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

// A byte for many numbers: each enqueue of the process asks.
static _Atomic unsigned char known_tasks[1 << 16];

void waybill_simulation_note_task(uint64_t task) {
    atomic_store_explicit(&known_tasks[task & 0xFFFF], 1, memory_order_release);
}

int waybill_simulation_may_know_task(uint64_t task) {
    return atomic_load_explicit(&known_tasks[task & 0xFFFF], memory_order_acquire);
}

int waybill_simulation_count_worlds(int change) {
    static atomic_int count;
    int now = atomic_fetch_add_explicit(&count, change, memory_order_relaxed) + change;
    if (change < 0 && now == 0)
        for (int index = 0; index < 1 << 16; index++)
            atomic_store_explicit(&known_tasks[index], 0, memory_order_relaxed);
    return now;
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

// A system call without the C library, whose function `syscall` is replaced below.
static long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
#else
    register long index __asm__("x8") = number;
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(index), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
#endif
    // The kernel returns the number of an error as a negative one.
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

// What stands for the C library's functions until the constructor below has found them, and for good in a static executable,
// in which they cannot be found. A signal handler may call most of these, but not `dlsym`: nothing is looked up later.

static int kernel_clock_gettime(clockid_t clock, struct timespec *time) {
    return (int)call_kernel(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
}

static int kernel_gettimeofday(struct timeval *restrict time, void *restrict zone) {
    return (int)call_kernel(SYS_gettimeofday, (long)time, (long)zone, 0, 0, 0, 0);
}

static time_t kernel_time(time_t *result) {
    struct timespec now = {0, 0};
    kernel_clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

static ssize_t kernel_getrandom(void *buffer, size_t count, unsigned int flags) {
    return call_kernel(SYS_getrandom, (long)buffer, (long)count, flags, 0, 0, 0);
}

static int kernel_getentropy(void *buffer, size_t count) {
    if (count > 256) {
        errno = EIO;
        return -1;
    }
    for (size_t filled = 0; filled < count;) {
        ssize_t more = kernel_getrandom((char *)buffer + filled, count - filled, 0);
        if (more < 0 && errno != EINTR) return -1;
        if (more > 0) filled += (size_t)more;
    }
    return 0;
}

// Whether `open` has a third argument.
static int has_mode(int flags) {
    // O_TMPFILE has the bit of O_DIRECTORY, too.
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

static int kernel_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (has_mode(flags)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return (int)call_kernel(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}

// The same with 64 bits.
#define kernel_open64 kernel_open

static int kernel_socket(int domain, int type, int protocol) {
    return (int)call_kernel(SYS_socket, domain, type, protocol, 0, 0, 0);
}

static int kernel_socketpair(int domain, int type, int protocol, int descriptors[2]) {
    return (int)call_kernel(SYS_socketpair, domain, type, protocol, (long)descriptors, 0, 0);
}

static int kernel_nanosleep(const struct timespec *time, struct timespec *rest) {
    return (int)call_kernel(SYS_nanosleep, (long)time, (long)rest, 0, 0, 0, 0);
}

// Returns the number of an error instead of storing it.
static int kernel_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    int before = errno;
    if (call_kernel(SYS_clock_nanosleep, clock, flags, (long)time, (long)rest, 0, 0) == 0) return 0;
    int error = errno;
    errno = before;
    return error;
}

static int kernel_usleep(useconds_t microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    return kernel_nanosleep(&time, NULL);
}

static unsigned int kernel_sleep(unsigned int seconds) {
    struct timespec time = {seconds, 0};
    return kernel_nanosleep(&time, &time) == 0 ? 0 : (unsigned int)time.tv_sec;
}

#define SYSTEM(name) static _Atomic(__typeof__(&name)) system_##name = kernel_##name

SYSTEM(clock_gettime);
SYSTEM(gettimeofday);
SYSTEM(time);
SYSTEM(getrandom);
SYSTEM(getentropy);
SYSTEM(open);
SYSTEM(open64);
SYSTEM(socket);
SYSTEM(socketpair);
SYSTEM(nanosleep);
SYSTEM(clock_nanosleep);
SYSTEM(usleep);
SYSTEM(sleep);

// The next function of a name in the order of libraries, which is the system's.
#define FIND(name)                                                                \
    do {                                                                          \
        void *found = dlsym(RTLD_NEXT, #name);                                    \
        if (found) system_##name = (__typeof__(&name))found;                      \
    } while (0)

static void find_system(void) {
    FIND(clock_gettime);
    FIND(gettimeofday);
    FIND(time);
    FIND(getrandom);
    FIND(getentropy);
    FIND(open);
    FIND(open64);
    FIND(socket);
    FIND(socketpair);
    FIND(nanosleep);
    FIND(clock_nanosleep);
    FIND(usleep);
    FIND(sleep);
}

int64_t waybill_simulation_real_now(void) {
    struct timespec time;
    system_clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// The functions below have the names of the C library's. A program's own come first when a library looks for them, so
// Swift's clocks, Foundation's dates and Swift's random numbers follow the world of the thread.

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
    // The system knows which clocks there are.
    int result = system_clock_gettime(clock, time);
    if (!simulated.world || result != 0) return result;
    // Processor time stays what it is. That of a given thread or process has a negative number.
    if (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) return 0;
    int is_calendar = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    int64_t now = simulated.now + (is_calendar ? calendar_origin : monotonic_origin);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

// The older ways to ask for the calendar's time, which do not go through the function above.

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!simulated.world) return system_gettimeofday(time, zone);
    int64_t now = simulated.now + calendar_origin;
    time->tv_sec = now / 1000000000;
    time->tv_usec = now % 1000000000 / 1000;
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *result) {
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
    if (!simulated.world) return system_getrandom(buffer, count, flags);
    fill(buffer, count);
    return (ssize_t)count;
}

__attribute__((visibility("default"))) int getentropy(void *buffer, size_t count) {
    if (!simulated.world) return system_getentropy(buffer, count);
    fill(buffer, count);
    return 0;
}

// How Swift's library asks for random numbers.
__attribute__((visibility("default"))) long syscall(long number, ...) {
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
    return call_kernel(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
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
        if (simulated.world && is_random_device(path)) return open_random();                  \
        mode_t mode = 0;                                                                      \
        if (has_mode(flags)) {                                                                \
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
    if (!simulated.world) return system_socket(domain, type, protocol);
    simulated.refused |= WAYBILL_REFUSED_SOCKET;
    errno = EACCES;
    return -1;
}

__attribute__((visibility("default"))) int socketpair(int domain, int type, int protocol, int descriptors[2]) {
    if (!simulated.world) return system_socketpair(domain, type, protocol, descriptors);
    simulated.refused |= WAYBILL_REFUSED_SOCKET;
    errno = EACCES;
    return -1;
}

// Asks name servers, with sockets of the C library's own. It is weak since a static executable that calls `freeaddrinfo` gets
// the C library's of both, and has then two. No system call stands for it; a signal handler must not call it, so it looks up.
__attribute__((visibility("default"), weak)) int getaddrinfo(
    const char *restrict name,
    const char *restrict service,
    const struct addrinfo *restrict hints,
    struct addrinfo **restrict result
) {
    if (simulated.world) {
        simulated.refused |= WAYBILL_REFUSED_SOCKET;
        errno = EACCES;
        return EAI_SYSTEM;
    }
    __typeof__(&getaddrinfo) system_getaddrinfo = (__typeof__(&getaddrinfo))dlsym(RTLD_NEXT, "getaddrinfo");
    if (system_getaddrinfo) return system_getaddrinfo(name, service, hints, result);
    errno = ENOSYS;
    return EAI_SYSTEM;
}

// Time passes for a thread that was to sleep, which might else try again for ever; the run fails.
static void refuse_sleep(int64_t nanoseconds) {
    simulated.refused |= WAYBILL_REFUSED_SLEEP;
    if (nanoseconds > 0) simulated.now += nanoseconds;
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * 1000000000LL + time->tv_nsec; }

__attribute__((visibility("default"))) int nanosleep(const struct timespec *time, struct timespec *rest) {
    if (!simulated.world) return system_nanosleep(time, rest);
    refuse_sleep(nanoseconds(time));
    return 0;
}

__attribute__((visibility("default"))) int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    if (!simulated.world) return system_clock_nanosleep(clock, flags, time, rest);
    struct timespec now = {0, 0};
    if ((flags & TIMER_ABSTIME) && clock_gettime(clock, &now) != 0) return errno;
    refuse_sleep(nanoseconds(time) - nanoseconds(&now));
    return 0;
}

__attribute__((visibility("default"))) int usleep(useconds_t microseconds) {
    if (!simulated.world) return system_usleep(microseconds);
    refuse_sleep(microseconds * 1000LL);
    return 0;
}

__attribute__((visibility("default"))) unsigned int sleep(unsigned int seconds) {
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
    find_system();
    const char *wish = getenv("WAYBILL_SIMULATION");
    if (wish && strcmp(wish, "off") == 0) return;
    if (!waybill_simulation_install_executors) return;
    // As the environment variable SWIFT_DETERMINISTIC_HASHING does, which would have to be set before. An executable with
    // Swift's library inside does not show it. Without it a seed would not decide the order of a set: nothing is installed.
    struct hashing_parameters *hashing = dlsym(RTLD_DEFAULT, "_swift_stdlib_Hashing_parameters");
    if (!hashing) return;
    *hashing = (struct hashing_parameters){0, 0, 1};
    waybill_simulation_install_executors();
    is_available = 1;
}

#else

#pragma GCC diagnostic ignored "-Wunused-parameter"

void waybill_simulation_enter(const void *world, int64_t now, uint64_t seed) {}
void waybill_simulation_leave(void) {}
int waybill_simulation_count_worlds(int change) { return 0; }
void waybill_simulation_note_task(uint64_t task) {}
int waybill_simulation_may_know_task(uint64_t task) { return 0; }
const void *waybill_simulation_world(void) { return 0; }
void waybill_simulation_set_now(int64_t now) {}
int waybill_simulation_is_available(void) { return 0; }
uint32_t waybill_simulation_take_refused(void) { return 0; }
int64_t waybill_simulation_real_now(void) { return 0; }
uint64_t waybill_simulation_task(const void *job) { return 0; }

#endif
