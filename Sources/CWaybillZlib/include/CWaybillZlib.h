// The few functions of the system's zlib that permessage-deflate needs: found at run time, on Apple platforms linked.
#ifndef CWAYBILLZLIB_H
#define CWAYBILLZLIB_H

#include <stddef.h>
#include <stdint.h>

// Whether zlib was found. The first call looks for it; any thread may call.
int waybill_zlib_is_available(void);

// How a call ended.
enum {
    WAYBILL_ZLIB_OK = 0,     // All that could be done with the space given was done.
    WAYBILL_ZLIB_END = 1,    // Inflating: the last block of the deflate stream was read.
    WAYBILL_ZLIB_ERROR = -1, // The data is not deflate's, or memory is short.
};

// Streams of raw deflate data. NULL without zlib or memory. One thread at a time may use a stream.
void *waybill_deflater_create(int level, int window_bits, int memory_level);
void *waybill_inflater_create(int window_bits);
// The same for gzip and zlib data, told apart by their headers (RFC 1950 and 1952).
void *waybill_gunzipper_create(void);
void waybill_deflater_destroy(void *stream);
void waybill_inflater_destroy(void *stream);

// Compresses input and ends on a byte boundary (a sync flush). To be called again with what is left of
// the input until *consumed reaches its end and *produced stays below the space.
int waybill_deflate(void *stream, const uint8_t *input, size_t input_count, uint8_t *output,
                    size_t output_space, size_t *consumed, size_t *produced);

// Decompresses as much as fits.
int waybill_inflate(void *stream, const uint8_t *input, size_t input_count, uint8_t *output,
                    size_t output_space, size_t *consumed, size_t *produced);

// Forgets what was compressed before.
int waybill_deflater_reset(void *stream);

// Begins a new deflate stream that may refer back to the data before it.
int waybill_inflater_continue(void *stream);

// Forgets what was decompressed before.
int waybill_inflater_reset(void *stream);

#endif
