#include "CWaybillZlib.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// zlib's stream, as its binary interface has had it since version 1.0.
typedef struct {
    const unsigned char *next_in;
    unsigned int avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*allocate)(void *, unsigned int, unsigned int);
    void (*release)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
} z_stream;

// Its constants (zlib manual).
enum { Z_SYNC_FLUSH = 2, Z_OK = 0, Z_STREAM_END = 1, Z_BUF_ERROR = -5, Z_DEFLATED = 8 };

// Its functions: the result, the name, the arguments. All are found or none.
#define WAYBILL_ZLIB_FUNCTIONS(F) \
    F(const char *, zlibVersion, (void)) \
    F(int, deflateInit2_, (z_stream *, int, int, int, int, int, const char *, int)) \
    F(int, deflate, (z_stream *, int)) \
    F(int, deflateReset, (z_stream *)) \
    F(int, deflateEnd, (z_stream *)) \
    F(int, inflateInit2_, (z_stream *, int, const char *, int)) \
    F(int, inflate, (z_stream *, int)) \
    F(int, inflateReset, (z_stream *)) \
    F(int, inflateEnd, (z_stream *)) \
    F(int, inflateGetDictionary, (z_stream *, unsigned char *, unsigned int *)) \
    F(int, inflateSetDictionary, (z_stream *, const unsigned char *, unsigned int))

#ifdef __APPLE__
// Part of every system of Apple, and linked.
#define F(result, name, arguments) \
    extern result name arguments; \
    static result(*zlib_##name) arguments = name;
WAYBILL_ZLIB_FUNCTIONS(F)
#undef F

int waybill_zlib_is_available(void) { return 1; }
#else
#define F(result, name, arguments) static result(*zlib_##name) arguments;
WAYBILL_ZLIB_FUNCTIONS(F)
#undef F

static int is_available;

static int find(void *library, const char *name, void *target) {
    void *symbol = dlsym(library, name);
    memcpy(target, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void load(void) {
    static const char *const names[] = {"libz.so.1", "libz.so"};
    void *library = NULL;
    for (size_t index = 0; library == NULL && index < sizeof names / sizeof *names; index++)
        library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    // Never closed: other threads may be in it until the process ends.
    int has_all = 1;
#define F(result, name, arguments) has_all = find(library, #name, &zlib_##name) && has_all;
    WAYBILL_ZLIB_FUNCTIONS(F)
#undef F
    is_available = has_all;
}

int waybill_zlib_is_available(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_available;
}
#endif

void *waybill_deflater_create(int level, int window_bits, int memory_level) {
    if (!waybill_zlib_is_available()) return NULL;
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    // Negative window bits mean raw data, without zlib's own header.
    if (zlib_deflateInit2_(stream, level, Z_DEFLATED, -window_bits, memory_level, 0, zlib_zlibVersion(),
                     (int)sizeof *stream) == Z_OK)
        return stream;
    free(stream);
    return NULL;
}

void *waybill_inflater_create(int window_bits) {
    if (!waybill_zlib_is_available()) return NULL;
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    if (zlib_inflateInit2_(stream, -window_bits, zlib_zlibVersion(), (int)sizeof *stream) == Z_OK)
        return stream;
    free(stream);
    return NULL;
}

void *waybill_gunzipper_create(void) {
    // 32 more than the window's bits make zlib look for either header; it negates what it is given.
    return waybill_inflater_create(-(15 + 32));
}

void waybill_deflater_destroy(void *stream) {
    if (stream == NULL) return;
    zlib_deflateEnd(stream);
    free(stream);
}

void waybill_inflater_destroy(void *stream) {
    if (stream == NULL) return;
    zlib_inflateEnd(stream);
    free(stream);
}

static int run(z_stream *stream, int (*step)(z_stream *, int), const uint8_t *input,
               size_t input_count, uint8_t *output, size_t output_space, size_t *consumed,
               size_t *produced) {
    // zlib counts in unsigned int: what is longer goes in several calls.
    unsigned int in = input_count > UINT_MAX ? UINT_MAX : (unsigned int)input_count;
    unsigned int out = output_space > UINT_MAX ? UINT_MAX : (unsigned int)output_space;
    stream->next_in = input;
    stream->avail_in = in;
    stream->next_out = output;
    stream->avail_out = out;
    int result = step(stream, Z_SYNC_FLUSH);
    *consumed = in - stream->avail_in;
    *produced = out - stream->avail_out;
    stream->next_in = NULL;
    stream->next_out = NULL;
    if (result == Z_STREAM_END) return WAYBILL_ZLIB_END;
    return result == Z_OK || result == Z_BUF_ERROR ? WAYBILL_ZLIB_OK : WAYBILL_ZLIB_ERROR;
}

int waybill_deflate(void *stream, const uint8_t *input, size_t input_count, uint8_t *output,
                    size_t output_space, size_t *consumed, size_t *produced) {
    return run(stream, zlib_deflate, input, input_count, output, output_space, consumed, produced);
}

int waybill_inflate(void *stream, const uint8_t *input, size_t input_count, uint8_t *output,
                    size_t output_space, size_t *consumed, size_t *produced) {
    return run(stream, zlib_inflate, input, input_count, output, output_space, consumed, produced);
}

int waybill_deflater_reset(void *stream) {
    return zlib_deflateReset(stream) == Z_OK ? WAYBILL_ZLIB_OK : WAYBILL_ZLIB_ERROR;
}

int waybill_inflater_reset(void *stream) {
    return zlib_inflateReset(stream) == Z_OK ? WAYBILL_ZLIB_OK : WAYBILL_ZLIB_ERROR;
}

int waybill_inflater_continue(void *stream) {
    unsigned char window[32768];
    unsigned int count = sizeof window;
    if (zlib_inflateGetDictionary(stream, window, &count) != Z_OK) return WAYBILL_ZLIB_ERROR;
    if (zlib_inflateReset(stream) != Z_OK) return WAYBILL_ZLIB_ERROR;
    return zlib_inflateSetDictionary(stream, window, count) == Z_OK ? WAYBILL_ZLIB_OK
                                                                 : WAYBILL_ZLIB_ERROR;
}
