// The output of every client: CPU microseconds per message, messages per second, and the spread of round trips.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double cpu_before, wall_before;

static double cpu_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1e6 + usage.ru_stime.tv_usec;
}

static double wall_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void begin(void) {
    cpu_before = cpu_now();
    wall_before = wall_now();
}

static inline void finish(const char *job, long count) {
    double cpu = cpu_now() - cpu_before, wall = wall_now() - wall_before;
    printf("{\"job\": \"%s\", \"count\": %ld, \"cpu_us_per_message\": %.4f, \"messages_per_second\": %.0f}\n", job, count,
           cpu / count, count / wall * 1e6);
}

static inline int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// The same output for round trips, with the median and the 99th percentile of the sorted times in microseconds.
static inline void finish_round_trips(const char *job, double *times, long count) {
    double cpu = cpu_now() - cpu_before, wall = wall_now() - wall_before;
    qsort(times, count, sizeof *times, ascending);
    printf("{\"job\": \"%s\", \"count\": %ld, \"cpu_us_per_message\": %.4f, \"messages_per_second\": %.0f, \"p50_us\": %.2f, "
           "\"p99_us\": %.2f}\n", job, count, cpu / count, count / wall * 1e6, times[count / 2], times[count * 99 / 100]);
}
