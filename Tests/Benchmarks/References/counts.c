// Counts a program's allocations, reference counts and system calls, and prints them as JSON to standard error at its end.
//
//     gcc -O2 -shared -fPIC -Wl,-z,initfirst counts.c -o counts.so
//     LD_PRELOAD=counts.so PROGRAM
//
// - Allocations and their bytes: each call of malloc and its relatives, in every library.
// - Retains and releases: each call of the Swift runtime's functions with an object that is counted, as a short string,
//   a literal and nil are not. Calls within the runtime's own library are not seen, nor weak and unowned references.
// - System calls by number: each one that enters the kernel, including futexes and those of libc, by syscall user
//   dispatch (Linux 5.11, x86-64). It switches to no other thread, as a tracer would, so that the order in which threads
//   run stays the same. The system calls of pthread_create are not seen; clock_gettime is none. Where the kernel lacks
//   the feature, "system_calls" is null.
//
// The program must not start other programs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

// MARK: Allocations. glibc's own entry points need no look-up before the first allocation.

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static _Atomic unsigned long allocations, bytes;

static void note(size_t size) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

void *malloc(size_t size) {
    note(size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(count * size);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    note(size);
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    note(size);
    void *made = __libc_memalign(alignment, size);
    if (made == NULL) {
        return ENOMEM;
    }
    *block = made;
    return 0;
}

// MARK: Retains and releases. Callers may expect that nearly all registers are preserved, so no C code runs here. Like the
// runtime, it takes addresses above the middle, and zero, for no object.

// Not static, since only assembly uses them.
__attribute__((visibility("hidden"))) unsigned long retains, releases;

#define forward(function, counter)                                                  \
    __attribute__((visibility("hidden"))) void *next_##function;                    \
    __asm__(".globl " #function "\n.type " #function ", @function\n" #function ":\n" \
            "test %rdi, %rdi\njle 1f\nlock incq " #counter "(%rip)\n"               \
            "1: jmp *next_" #function "(%rip)\n");

#define each_function(apply)                     \
    apply(swift_retain, retains)                 \
    apply(swift_retain_n, retains)               \
    apply(swift_bridgeObjectRetain, retains)     \
    apply(swift_bridgeObjectRetain_n, retains)   \
    apply(swift_release, releases)               \
    apply(swift_release_n, releases)             \
    apply(swift_bridgeObjectRelease, releases)   \
    apply(swift_bridgeObjectRelease_n, releases)

each_function(forward)

#define find(function, counter) next_##function = dlsym(RTLD_NEXT, #function);

// MARK: System calls

// Only the code between these two labels enters the kernel without being counted.
extern const char start_of_calls[] __attribute__((visibility("hidden")));
extern const char end_of_calls[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) long enter_kernel(
    long number, long a, long b, long c, long d, long e, long f);
__attribute__((visibility("hidden"))) void return_from_signal(void);

__asm__("start_of_calls:\n"
        ".hidden enter_kernel\n.globl enter_kernel\nenter_kernel:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\n"
        "mov 8(%rsp), %r9\nsyscall\nret\n"
        ".hidden return_from_signal\n.globl return_from_signal\nreturn_from_signal:\n"
        "mov $15, %eax\nsyscall\nhlt\n"
        "end_of_calls:\n");

enum { NUMBERS = 512 };
static _Atomic unsigned long calls[NUMBERS];
static int can_dispatch;

// Turns the dispatch of the calling thread on or off. Returns nonzero when the kernel cannot do it.
static long dispatch(int on) {
    long start = (long)start_of_calls, size = end_of_calls - start_of_calls;
    // PR_SET_SYSCALL_USER_DISPATCH
    return enter_kernel(SYS_prctl, 59, on, on ? start : 0, on ? size : 0, 0, 0);
}

// Makes the call that was intercepted and puts its result where the caller expects it.
static void handle(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    sigset_t *mask = &((ucontext_t *)context)->uc_sigmask;
    long number = registers[REG_RAX];
    if (number >= 0 && number < NUMBERS) atomic_fetch_add_explicit(&calls[number], 1, memory_order_relaxed);
    long result;
    if (number == SYS_rt_sigprocmask) {
        // The return from this handler sets the mask of the context. SIGSYS must never be blocked.
        uint64_t *now = (uint64_t *)mask, old = *now;
        const uint64_t *given = (const uint64_t *)registers[REG_RSI];
        if (given) {
            long how = registers[REG_RDI];
            *now = how == SIG_BLOCK ? old | *given : how == SIG_UNBLOCK ? old & ~*given : *given;
            *now &= ~(1ull << (SIGSYS - 1));
        }
        if (registers[REG_RDX]) *(uint64_t *)registers[REG_RDX] = old;
        result = 0;
    } else {
        result = enter_kernel(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                              registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    }
    registers[REG_RAX] = result;
}

// A new thread begins on an empty stack, to which the handler could not return: the system call that makes it is not
// intercepted. The thread turns dispatch on itself.
struct start {
    void *(*body)(void *);
    void *argument;
};

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    dispatch(1);
    return start.body(start.argument);
}

static int (*next_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    if (!can_dispatch) return next_pthread_create(thread, attributes, body, argument);
    struct start *start = __libc_malloc(sizeof *start);
    if (start == NULL) return EAGAIN;
    *start = (struct start){body, argument};
    dispatch(0);
    int failed = next_pthread_create(thread, attributes, begin, start);
    dispatch(1);
    if (failed) free(start);
    return failed;
}

// The kernel's own structure. libc would insert its own return from the handler, which would be intercepted again.
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

__attribute__((constructor)) static void prepare(void) {
    each_function(find)
    next_pthread_create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
        dlsym(RTLD_NEXT, "pthread_create");
    unsetenv("LD_PRELOAD");
    enum { RESTORER = 0x04000000 };
    struct kernel_action action = {handle, SA_SIGINFO | SA_NODEFER | RESTORER, return_from_signal, 0};
    can_dispatch = enter_kernel(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0) == 0 && dispatch(1) == 0;
}

__attribute__((destructor)) static void tell(void) {
    if (can_dispatch) dispatch(0);
    fprintf(stderr, "{\"allocations\": %lu, \"bytes\": %lu, \"retains\": %lu, \"releases\": %lu, \"system_calls\": ",
            allocations, bytes, retains, releases);
    const char *separator = "{";
    for (int number = 0; can_dispatch && number < NUMBERS; number++) {
        if (calls[number] == 0) continue;
        fprintf(stderr, "%s\"%d\": %lu", separator, number, calls[number]);
        separator = ", ";
    }
    fprintf(stderr, "%s}\n", can_dispatch ? "}" : "null");
}
