// The functions of the system's SQLite that the session store needs, found at run time.
#ifndef CWAYBILLSQLITE_H
#define CWAYBILLSQLITE_H

#include <stdint.h>

// Whether SQLite was found, and is compiled for several threads. The first call looks for it; any thread may call.
int waybill_sqlite_is_available(void);

// Result codes of SQLite (sqlite.org/rescode.html) that callers tell apart. The low byte of an extended code.
enum {
    WAYBILL_SQLITE_OK = 0,
    WAYBILL_SQLITE_ERROR = 1,
    WAYBILL_SQLITE_PERM = 3,
    WAYBILL_SQLITE_BUSY = 5,
    WAYBILL_SQLITE_LOCKED = 6,
    WAYBILL_SQLITE_NOMEM = 7,
    WAYBILL_SQLITE_READONLY = 8,
    WAYBILL_SQLITE_IOERR = 10,
    WAYBILL_SQLITE_CORRUPT = 11,
    WAYBILL_SQLITE_FULL = 13,
    WAYBILL_SQLITE_CANTOPEN = 14,
    WAYBILL_SQLITE_AUTH = 23,
    WAYBILL_SQLITE_NOTADB = 26,
    WAYBILL_SQLITE_ROW = 100,
    WAYBILL_SQLITE_DONE = 101,
};

// The types of a column's value (sqlite.org/c3ref/c_blob.html).
enum {
    WAYBILL_SQLITE_TYPE_INTEGER = 1,
    WAYBILL_SQLITE_TYPE_TEXT = 3,
    WAYBILL_SQLITE_TYPE_BLOB = 4,
    WAYBILL_SQLITE_TYPE_NULL = 5,
};

// Makes a database without tables that only its owner may read, unless there is something with this path. The file has
// all its bytes when it gets its name, so a process that is killed meanwhile leaves no file with this path. It may leave
// one with the temporary path, which must be in the same folder. No file that is there is opened: closing it would end
// the locks that this process has on it. A log that an earlier file with this path has left is removed before another
// process can open the new file. *is_new tells whether the file was made. The result is 0 or the system's error
// number.
int waybill_sqlite_make(const char *path, const char *temporary, int *is_new);

// Finds the identity of a file, the same for all its names and links, and its size in bytes. The result is 0 or the
// system's error number; only a regular file has none.
int waybill_sqlite_identify(const char *path, uint64_t *device, uint64_t *inode, int64_t *size);

// Blocks the thread for 10 milliseconds.
void waybill_sqlite_pause(void);

// Opens a database for reading and writing. One thread at a time may use it, with its statements. *database is NULL
// without SQLite or memory; otherwise it must be closed, also after an error.
int waybill_sqlite_open(const char *path, int busy_timeout_ms, void **database);
// Opens a database for reading, as its URI says.
int waybill_sqlite_open_reading(const char *uri, void **database);
// Whether closing leaves the log as it is, instead of writing it to the database and removing it.
void waybill_sqlite_keep_log(void *database, int keeps_log);
// Its statements must be finalized before.
void waybill_sqlite_close(void *database);
// The text of the last error; valid until the next call.
const char *waybill_sqlite_message(void *database);

// Runs statements without results and parameters.
int waybill_sqlite_execute(void *database, const char *sql);

// Statements with parameters, which are numbered from 1, and columns, which are numbered from 0.
int waybill_sqlite_prepare(void *database, const char *sql, void **statement);
void waybill_sqlite_finalize(void *statement);
int waybill_sqlite_step(void *statement);
// Ends a run and forgets its parameters.
void waybill_sqlite_reset(void *statement);
int waybill_sqlite_bind_integer(void *statement, int index, int64_t value);
// The bytes are copied.
int waybill_sqlite_bind_text(void *statement, int index, const char *text, int count);
int waybill_sqlite_bind_blob(void *statement, int index, const void *bytes, int count);
int waybill_sqlite_column_type(void *statement, int column);
int64_t waybill_sqlite_column_integer(void *statement, int column);
// The bytes of a text or blob; valid until the next step. NULL if there are none.
const void *waybill_sqlite_column_bytes(void *statement, int column, int *count);

#endif
