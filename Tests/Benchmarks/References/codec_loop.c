// Encodes and decodes a PUBLISH of 256 bytes in plain C. P5 is compared with it.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint8_t out[4096], payload[256];
static const char topic[] = "benchmark/topic";

__attribute__((noinline)) static size_t encode(uint8_t *at, const uint8_t *body, size_t size) {
    size_t topic_size = sizeof topic - 1, length = 2 + topic_size + 1 + size, n = 0;
    at[n++] = 0x30;
    for (size_t rest = length; ; rest >>= 7) {
        at[n++] = (rest & 127) | (rest > 127 ? 128 : 0);
        if (rest < 128) break;
    }
    at[n++] = topic_size >> 8, at[n++] = topic_size;
    memcpy(at + n, topic, topic_size);
    n += topic_size;
    at[n++] = 0;
    memcpy(at + n, body, size);
    return n + size;
}

__attribute__((noinline)) static size_t decode(const uint8_t *at, const uint8_t **topic_at, const uint8_t **body) {
    size_t length = 0, n = 1;
    for (int shift = 0; ; shift += 7) {
        length |= (size_t)(at[n] & 127) << shift;
        if (at[n++] < 128) break;
    }
    size_t end = n + length, topic_size = at[n] << 8 | at[n + 1];
    *topic_at = at + n + 2;
    n += 2 + topic_size;
    n += 1 + at[n];
    *body = at + n;
    return end - n;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void) {
    const long count = 10000000;
    volatile size_t sum = 0;
    const uint8_t *a, *b;
    double start = now();
    for (long i = 0; i < count; i++) payload[0] = i, sum += encode(out, payload, sizeof payload);
    double encoded = now();
    for (long i = 0; i < count; i++) out[40] = i, sum += decode(out, &a, &b);
    double decoded = now();
    printf("{\"job\": \"codec\", \"encode_ns\": %.2f, \"decode_ns\": %.2f}\n", (encoded - start) / count, (decoded - encoded) / count);
    return 0;
}
