#include "CWaybillSQLite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// SQLite's types, which stay opaque.
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

// Its functions: the result, the name, the arguments. All are found or none.
#define WAYBILL_SQLITE_FUNCTIONS(F) \
    F(int, sqlite3_threadsafe, (void)) \
    F(int, sqlite3_open_v2, (const char *, sqlite3 **, int, const char *)) \
    F(int, sqlite3_extended_result_codes, (sqlite3 *, int)) \
    F(int, sqlite3_busy_timeout, (sqlite3 *, int)) \
    F(int, sqlite3_db_config, (sqlite3 *, int, ...)) \
    F(int, sqlite3_close, (sqlite3 *)) \
    F(const char *, sqlite3_errmsg, (sqlite3 *)) \
    F(int, sqlite3_exec, (sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **)) \
    F(int, sqlite3_prepare_v2, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **)) \
    F(int, sqlite3_finalize, (sqlite3_stmt *)) \
    F(int, sqlite3_step, (sqlite3_stmt *)) \
    F(int, sqlite3_reset, (sqlite3_stmt *)) \
    F(int, sqlite3_clear_bindings, (sqlite3_stmt *)) \
    F(int, sqlite3_bind_int64, (sqlite3_stmt *, int, int64_t)) \
    F(int, sqlite3_bind_text, (sqlite3_stmt *, int, const char *, int, void (*)(void *))) \
    F(int, sqlite3_bind_blob, (sqlite3_stmt *, int, const void *, int, void (*)(void *))) \
    F(int, sqlite3_column_type, (sqlite3_stmt *, int)) \
    F(int64_t, sqlite3_column_int64, (sqlite3_stmt *, int)) \
    F(const void *, sqlite3_column_blob, (sqlite3_stmt *, int)) \
    F(int, sqlite3_column_bytes, (sqlite3_stmt *, int))

// Its constants (sqlite.org/c3ref).
enum {
    OPEN_READONLY = 0x1,
    OPEN_READWRITE = 0x2,
    OPEN_CREATE = 0x4,
    OPEN_URI = 0x40,
    OPEN_NOMUTEX = 0x8000,
    CONFIG_NO_CHECKPOINT_ON_CLOSE = 1006,
};

#ifdef __APPLE__
// Part of every system of Apple, and linked.
#define F(result, name, arguments) \
    extern result name arguments; \
    static result(*waybill_##name) arguments = name;
WAYBILL_SQLITE_FUNCTIONS(F)
#undef F

int waybill_sqlite_is_available(void) { return waybill_sqlite3_threadsafe() != 0; }
#else
#define F(result, name, arguments) static result(*waybill_##name) arguments;
WAYBILL_SQLITE_FUNCTIONS(F)
#undef F

static int is_available;

static int find(void *library, const char *name, void *target) {
    void *symbol = dlsym(library, name);
    memcpy(target, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void load(void) {
    static const char *const names[] = {"libsqlite3.so.0", "libsqlite3.so"};
    void *library = NULL;
    for (size_t index = 0; library == NULL && index < sizeof names / sizeof *names; index++)
        library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    // Never closed: other threads may be in it until the process ends.
    int has_all = 1;
#define F(result, name, arguments) has_all = find(library, #name, &waybill_##name) && has_all;
    WAYBILL_SQLITE_FUNCTIONS(F)
#undef F
    is_available = has_all && waybill_sqlite3_threadsafe() != 0;
}

int waybill_sqlite_is_available(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_available;
}
#endif

int waybill_sqlite_identify(const char *path, uint64_t *device, uint64_t *inode, int64_t *size) {
    struct stat status;
    if (stat(path, &status) != 0) return errno;
    // A pipe or a device could make the first read wait forever.
    if (!S_ISREG(status.st_mode)) return S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
    *device = (uint64_t)status.st_dev;
    *inode = (uint64_t)status.st_ino;
    *size = (int64_t)status.st_size;
    return 0;
}

// Keeps others from opening the database as long as the file is open here: locks the bytes of SQLite's locks
// (sqlite.org/lockingv3.html, 3).
static int lock_database(int file) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
    return fcntl(file, F_SETLK, &lock) == 0 ? 0 : errno;
}

// Makes a database without tables (sqlite.org/fileformat2.html, 1.3 and 1.6), and leaves it open and locked.
static int make_database(const char *path, int *made) {
    unsigned char page[4096] = {0};
    memcpy(page, "SQLite format 3", 16);
    page[16] = sizeof page >> 8;
    page[18] = page[19] = 1;
    page[21] = 64;
    page[22] = page[23] = 32;
    // The number of changes, that of pages, and the change that has counted them.
    page[27] = page[31] = page[95] = 1;
    memcpy(page + 68, "WbSt", 4);
    // An empty leaf of the table of tables, whose cells begin at the end of the page.
    page[100] = 13;
    page[105] = sizeof page >> 8;
    // SQLite gives its own files the permissions of this one.
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    int code = lock_database(file);
    ssize_t count = code == 0 ? write(file, page, sizeof page) : 0;
    if (code == 0 && count != sizeof page) code = count < 0 ? errno : ENOSPC;
    // Otherwise the name may be on the disk before the page.
    if (code == 0 && fsync(file) != 0) code = errno;
    if (code == 0) {
        *made = file;
    } else {
        unlink(path);
        close(file);
    }
    return code;
}

// Removes what an earlier database with this path has left.
static void remove_log(const char *path, const char *ending) {
    size_t length = strlen(path) + strlen(ending) + 1;
    char *name = malloc(length);
    if (name == NULL) return;
    snprintf(name, length, "%s%s", path, ending);
    unlink(name);
    free(name);
}

int waybill_sqlite_make(const char *path, const char *temporary, int *is_new) {
    struct stat status;
    *is_new = 0;
    if (stat(path, &status) == 0) return 0;
    int file = -1;
    int code = make_database(temporary, &file);
    if (code != 0) return code;
    if (link(temporary, path) != 0) code = errno;
    unlink(temporary);
    if (code != 0) {
        close(file);
        // A file system without links. A process that is killed meanwhile may leave a file that is too short.
        if (code != EEXIST) code = make_database(path, &file);
    }
    *is_new = code == 0;
    if (code == 0) {
        // The logs belong to a database that is gone. SQLite would read them into this new one.
        remove_log(path, "-wal");
        remove_log(path, "-journal");
        close(file);
    }
    return code == EEXIST ? 0 : code;
}

void waybill_sqlite_pause(void) {
    usleep(10000);
}

static int open_file(const char *path, int flags, int busy_timeout_ms, void **database) {
    *database = NULL;
    if (!waybill_sqlite_is_available()) return WAYBILL_SQLITE_ERROR;
    sqlite3 *opened = NULL;
    int code = waybill_sqlite3_open_v2(path, &opened, flags | OPEN_NOMUTEX, NULL);
    *database = opened;
    if (opened == NULL) return WAYBILL_SQLITE_NOMEM;
    waybill_sqlite3_extended_result_codes(opened, 1);
    waybill_sqlite3_busy_timeout(opened, busy_timeout_ms);
    return code;
}

int waybill_sqlite_open(const char *path, int busy_timeout_ms, void **database) {
    return open_file(path, OPEN_READWRITE | OPEN_CREATE, busy_timeout_ms, database);
}

int waybill_sqlite_open_reading(const char *uri, void **database) {
    return open_file(uri, OPEN_READONLY | OPEN_URI, 0, database);
}

void waybill_sqlite_keep_log(void *database, int keeps_log) {
    waybill_sqlite3_db_config(database, CONFIG_NO_CHECKPOINT_ON_CLOSE, keeps_log, (int *)NULL);
}

void waybill_sqlite_close(void *database) {
    if (database != NULL) waybill_sqlite3_close(database);
}

const char *waybill_sqlite_message(void *database) {
    return database == NULL ? "out of memory" : waybill_sqlite3_errmsg(database);
}

int waybill_sqlite_execute(void *database, const char *sql) {
    return waybill_sqlite3_exec(database, sql, NULL, NULL, NULL);
}

int waybill_sqlite_prepare(void *database, const char *sql, void **statement) {
    sqlite3_stmt *prepared = NULL;
    int code = waybill_sqlite3_prepare_v2(database, sql, -1, &prepared, NULL);
    *statement = prepared;
    return code;
}

void waybill_sqlite_finalize(void *statement) {
    if (statement != NULL) waybill_sqlite3_finalize(statement);
}

int waybill_sqlite_step(void *statement) { return waybill_sqlite3_step(statement); }

void waybill_sqlite_reset(void *statement) {
    waybill_sqlite3_reset(statement);
    waybill_sqlite3_clear_bindings(statement);
}

int waybill_sqlite_bind_integer(void *statement, int index, int64_t value) {
    return waybill_sqlite3_bind_int64(statement, index, value);
}

// SQLITE_TRANSIENT: SQLite copies the bytes.
static void (*const transient)(void *) = (void (*)(void *))(intptr_t)-1;

int waybill_sqlite_bind_text(void *statement, int index, const char *text, int count) {
    return waybill_sqlite3_bind_text(statement, index, count == 0 ? "" : text, count, transient);
}

int waybill_sqlite_bind_blob(void *statement, int index, const void *bytes, int count) {
    // Without a pointer SQLite would bind NULL.
    return waybill_sqlite3_bind_blob(statement, index, count == 0 ? "" : bytes, count, transient);
}

int waybill_sqlite_column_type(void *statement, int column) {
    return waybill_sqlite3_column_type(statement, column);
}

int64_t waybill_sqlite_column_integer(void *statement, int column) {
    return waybill_sqlite3_column_int64(statement, column);
}

const void *waybill_sqlite_column_bytes(void *statement, int column, int *count) {
    const void *bytes = waybill_sqlite3_column_blob(statement, column);
    *count = waybill_sqlite3_column_bytes(statement, column);
    return bytes;
}
