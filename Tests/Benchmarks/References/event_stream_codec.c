// Parses event streams in plain C. P8 is compared with it. The unit is nanoseconds for each event.
//
//   parse_N         events with N bytes of data, in pieces of 16 KiB cut at odd places: lines found by either end, the
//                   field's name compared, the data copied out at the blank line
//   parse_id_N      the same with an id before the data, copied as well
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 16381, ROOM = 1 << 20 };

static char stream[ROOM], buffer[1 << 16], data[1 << 16], id[256];
static size_t data_size, id_size;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int is_field(const char *line, size_t size, const char *name, size_t name_size) {
    return size >= name_size && !memcmp(line, name, name_size) && (size == name_size || line[name_size] == ':');
}

// Parses the complete events at the front. Returns the number of bytes that they take.
__attribute__((noinline)) static size_t parse(const char *bytes, size_t have, long *events, size_t *total) {
    const char *at = bytes, *end = bytes + have, *line_end, *other;
    static int has_data, skip;
    static const char *value;
    for (;;) {
        if (skip && at < end) {
            skip = 0;
            if (*at == '\n') at++;
        }
        if (!(line_end = memchr(at, '\n', end - at))) line_end = end;
        if ((other = memchr(at, '\r', line_end - at))) line_end = other;
        if (line_end == end) return at - bytes;
        size_t size = line_end - at;
        skip = *line_end == '\r';
        if (!size) {
            if (has_data) ++*events, *total += data_size + id_size;
            has_data = 0;
            data_size = 0;
        } else if (is_field(at, size, "data", 4)) {
            value = at + 4 + (size > 4) + (size > 5 && at[5] == ' ');
            if (has_data) data[data_size++] = '\n';
            if (data_size + (line_end - value) > sizeof data - 1) exit(1);
            memcpy(data + data_size, value, line_end - value);
            data_size += line_end - value;
            has_data = 1;
        } else if (is_field(at, size, "id", 2)) {
            value = at + 2 + (size > 2) + (size > 3 && at[3] == ' ');
            if (line_end - value > (long)sizeof id) exit(1);
            if (!memchr(value, 0, line_end - value)) memcpy(id, value, id_size = line_end - value);
        }
        at = line_end + 1;
    }
}

static double job(int size, int has_id) {
    size_t used = 0, kept = 0, total = 0;
    long in_stream = 0, events = 0, rounds = 200;
    while (used + size + 64 < ROOM) {
        if (has_id) used += sprintf(stream + used, "id: %d\n", 10000000 + (int)in_stream);
        used += sprintf(stream + used, "data: ");
        memset(stream + used, 'x', size);
        used += size;
        stream[used++] = '\n';
        stream[used++] = '\n';
        in_stream++;
    }
    double start = now();
    for (long round = 0; round < rounds; round++) {
        for (size_t at = 0; at < used; at += PIECE) {
            size_t piece = used - at < PIECE ? used - at : PIECE;
            memcpy(buffer + kept, stream + at, piece);
            size_t taken = parse(buffer, kept + piece, &events, &total);
            kept = kept + piece - taken;
            memmove(buffer, buffer + taken, kept);
        }
    }
    double time = now() - start;
    if (events != rounds * in_stream || total < (size_t)events * size) exit(1);
    return time / events;
}

int main(void) {
    printf("{\"job\": \"C loop\"");
    int sizes[] = {16, 100, 1024};
    for (int i = 0; i < 3; i++) {
        printf(", \"parse_%d_ns\": %.2f", sizes[i], job(sizes[i], 0));
        printf(", \"parse_id_%d_ns\": %.2f", sizes[i], job(sizes[i], 1));
    }
    printf("}\n");
    return 0;
}
