#ifdef __linux__
#include "connection.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// MARK: Bytes in and out

BIO_METHOD *waybill_bio_method;

// What waits is what a write has made, which has a limit of its own, and what the peer asks for: answers to
// KeyUpdate (RFC 8446, 4.6.3) and to HelloRequest. One that asks on and on and reads no answer is given up.
enum { WAITING_LIMIT = 1 << 18 };

static int give(BIO *bio, char *target, int space) {
    waybill_connection *connection = waybill_BIO_get_data(bio);
    waybill_BIO_clear_flags(bio, BIO_RWS_AND_RETRY);
    if (space <= 0) return 0;
    if (connection->input_count == 0) {
        waybill_BIO_set_flags(bio, BIO_READ | BIO_RETRY);
        return -1;
    }
    size_t count = connection->input_count < (size_t)space ? connection->input_count : (size_t)space;
    memcpy(target, connection->input, count);
    connection->input += count;
    connection->input_count -= count;
    return (int)count;
}

static int reserve(waybill_bytes *buffer, size_t count) {
    if (buffer->capacity - buffer->end >= count) return 1;
    size_t capacity = buffer->end < 1024 ? 2048 : buffer->end * 2;
    if (capacity < buffer->end + count) capacity = buffer->end + count;
    uint8_t *grown = realloc(buffer->bytes, capacity);
    if (grown == NULL) return 0;
    buffer->bytes = grown;
    buffer->capacity = capacity;
    return 1;
}

static int append(waybill_bytes *buffer, const char *bytes, size_t count) {
    if (!reserve(buffer, count)) return 0;
    memcpy(buffer->bytes + buffer->end, bytes, count);
    buffer->end += count;
    return 1;
}

static int take(BIO *bio, const char *bytes, int count) {
    waybill_connection *connection = waybill_BIO_get_data(bio);
    waybill_BIO_clear_flags(bio, BIO_RWS_AND_RETRY);
    if (count <= 0) return 0;
    if (connection->waiting.end - connection->waiting.begin > WAITING_LIMIT) {
        connection->is_flooded = 1;
        return -1;
    }
    if (append(&connection->waiting, bytes, (size_t)count)) return count;
    connection->is_out_of_memory = 1;
    return -1;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_FLUSH;
}

int waybill_make_bio_method(void) {
    int index = waybill_BIO_get_new_index();
    if (index == -1) return 0;
    waybill_bio_method = waybill_BIO_meth_new(index | BIO_SOURCE_SINK, "waybill");
    return waybill_bio_method != NULL && waybill_BIO_meth_set_read(waybill_bio_method, give)
        && waybill_BIO_meth_set_write(waybill_bio_method, take)
        && waybill_BIO_meth_set_ctrl(waybill_bio_method, control);
}

size_t waybill_tls_outbound(void *opaque, const uint8_t **bytes) {
    waybill_connection *connection = opaque;
    if (connection->sending.begin == connection->sending.end) {
        waybill_bytes empty = connection->sending;
        connection->sending = connection->waiting;
        connection->waiting = empty;
        connection->waiting.begin = connection->waiting.end = 0;
    }
    size_t count = connection->sending.end - connection->sending.begin;
    *bytes = count == 0 ? NULL : connection->sending.bytes + connection->sending.begin;
    return count;
}

// What an idle connection keeps of a buffer that has emptied: nothing.
static void release(waybill_bytes *buffer) {
    if (buffer->begin < buffer->end) return;
    free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}

void waybill_tls_sent(void *opaque, size_t count) {
    waybill_connection *connection = opaque;
    connection->sending.begin += count;
    if (connection->waiting.begin < connection->waiting.end) return;
    release(&connection->sending);
    release(&connection->waiting);
}

// MARK: Life

void *waybill_tls_create(void *opaque, const char *host, int is_address) {
    waybill_context *context = opaque;
    waybill_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) return NULL;
    waybill_ERR_clear_error();
    connection->ssl = waybill_SSL_new(context->ssl);
    BIO *bio = connection->ssl == NULL ? NULL : waybill_BIO_new(waybill_bio_method);
    if (bio == NULL) {
        if (connection->ssl != NULL) waybill_SSL_free(connection->ssl);
        free(connection);
        return NULL;
    }
    __atomic_add_fetch(&context->references, 1, __ATOMIC_RELAXED);
    connection->context = context;
    connection->failure.alert = -1;
    waybill_BIO_set_data(bio, connection);
    waybill_BIO_set_init(bio, 1);
    waybill_SSL_set_bio(connection->ssl, bio, bio);
    waybill_SSL_set_ex_data(connection->ssl, 0, connection);
    if (context->is_server) {
        waybill_SSL_set_accept_state(connection->ssl);
        return connection;
    }
    waybill_SSL_set_connect_state(connection->ssl);
    int is_named = 1;
    if (host != NULL) {
        connection->host = strdup(host);
        X509_VERIFY_PARAM *parameters = waybill_SSL_get0_param(connection->ssl);
        // RFC 9525, 6.3: names in the certificate's list only, and a wildcard stands for a whole label.
        waybill_X509_VERIFY_PARAM_set_hostflags(
            parameters, X509_CHECK_NO_PARTIAL_WILDCARDS | X509_CHECK_NEVER_CHECK_SUBJECT);
        is_named = is_address
            ? waybill_X509_VERIFY_PARAM_set1_ip_asc(parameters, host)
            // RFC 6066, 3: addresses are not asked for.
            : waybill_X509_VERIFY_PARAM_set1_host(parameters, host, 0)
                && waybill_SSL_ctrl(connection->ssl, CTRL_SET_TLSEXT_HOSTNAME, 0, (void *)host);
        SSL_SESSION *session = waybill_context_take_session(context, host);
        if (session != NULL) {
            waybill_SSL_set_session(connection->ssl, session);
            waybill_SSL_SESSION_free(session);
        }
    }
    if (is_named == 1) return connection;
    waybill_tls_destroy(connection);
    return NULL;
}

void waybill_tls_destroy(void *opaque) {
    waybill_connection *connection = opaque;
    if (connection == NULL) return;
    waybill_SSL_free(connection->ssl);
    waybill_context_release(connection->context);
    free(connection->host);
    free(connection->sending.bytes);
    free(connection->waiting.bytes);
    free(connection);
}

// MARK: Steps

static int fail(waybill_connection *connection) {
    unsigned long error = waybill_ERR_peek_error();
    waybill_tls_failure_t *failure = &connection->failure;
    failure->reason = reason(error);
    if (failure->reason > REASON_ALERT && failure->reason < REASON_ALERT + 256)
        failure->alert = failure->reason - REASON_ALERT;
    failure->verification = (int)waybill_SSL_get_verify_result(connection->ssl);
    failure->lacked_certificate = connection->lacked_certificate;
    failure->issuer = connection->issuer[0] == 0 ? NULL : connection->issuer;
    const char *words = error == 0 ? NULL : waybill_ERR_reason_error_string(error);
    if (failure->verification != 0)
        words = waybill_X509_verify_cert_error_string(failure->verification);
    if (connection->is_out_of_memory) words = "out of memory";
    if (connection->is_flooded) words = "the peer reads none of the answers that it asks for";
    // These texts are constants of the library, which is never closed.
    failure->words = words == NULL ? "unknown" : words;
    connection->has_failed = 1;
    waybill_ERR_clear_error();
    return WAYBILL_TLS_FAILED;
}

// What a result that is not success means.
static int outcome(waybill_connection *connection, int result) {
    switch (waybill_SSL_get_error(connection->ssl, result)) {
    case ERROR_WANT_READ: return WAYBILL_TLS_OK;
    case ERROR_ZERO_RETURN: return WAYBILL_TLS_CLOSED;
    default: return fail(connection);
    }
}

static int end(waybill_connection *connection, size_t input_count, size_t *consumed, int result) {
    *consumed = input_count - connection->input_count;
    connection->input = NULL;
    connection->input_count = 0;
    return result;
}

int waybill_tls_handshake(void *opaque, const uint8_t *input, size_t input_count, size_t *consumed,
                          int *is_done) {
    waybill_connection *connection = opaque;
    *consumed = 0;
    *is_done = 0;
    if (connection->has_failed) return WAYBILL_TLS_FAILED;
    connection->input = input;
    connection->input_count = input_count;
    waybill_ERR_clear_error();
    int result = waybill_SSL_do_handshake(connection->ssl);
    *is_done = result == 1;
    int what = result == 1 ? WAYBILL_TLS_OK : outcome(connection, result);
    return end(connection, input_count, consumed, what);
}

int waybill_tls_read(void *opaque, const uint8_t *input, size_t input_count, size_t *consumed,
                     uint8_t *output, size_t space, size_t *produced) {
    waybill_connection *connection = opaque;
    *consumed = 0;
    *produced = 0;
    if (connection->has_failed) return WAYBILL_TLS_FAILED;
    connection->input = input;
    connection->input_count = input_count;
    waybill_ERR_clear_error();
    int what = WAYBILL_TLS_OK;
    while (*produced < space) {
        size_t left = space - *produced;
        int result = waybill_SSL_read(connection->ssl, output + *produced,
                                      left > INT_MAX ? INT_MAX : (int)left);
        if (result <= 0) {
            what = outcome(connection, result);
            break;
        }
        *produced += (size_t)result;
    }
    return end(connection, input_count, consumed, what);
}

int waybill_tls_write(void *opaque, const uint8_t *input, size_t input_count, size_t limit,
                      size_t *consumed) {
    waybill_connection *connection = opaque;
    *consumed = 0;
    if (connection->has_failed) return WAYBILL_TLS_FAILED;
    waybill_ERR_clear_error();
    // Room for all of it at once: each record of 16 KiB adds less than 64 bytes.
    size_t planned = input_count < limit ? input_count : limit;
    reserve(&connection->waiting, planned + 64 * (planned / 16384 + 1));
    while (*consumed < input_count) {
        size_t pending = connection->waiting.end - connection->waiting.begin;
        if (pending >= limit) break;
        size_t left = input_count - *consumed;
        int result = waybill_SSL_write(connection->ssl, input + *consumed, left > 16384 ? 16384 : (int)left);
        if (result <= 0) return outcome(connection, result);
        *consumed += (size_t)result;
    }
    return WAYBILL_TLS_OK;
}

void waybill_tls_finish(void *opaque) {
    waybill_connection *connection = opaque;
    if (connection->has_failed) return;
    waybill_ERR_clear_error();
    waybill_SSL_shutdown(connection->ssl);
    waybill_ERR_clear_error();
}

size_t waybill_tls_readable_count(void *opaque) {
    waybill_connection *connection = opaque;
    int count = waybill_SSL_pending(connection->ssl);
    return count > 0 ? (size_t)count : 0;
}

// MARK: What was agreed on

waybill_tls_failure_t waybill_tls_failure(void *opaque) {
    return ((waybill_connection *)opaque)->failure;
}

const char *waybill_tls_version(void *opaque) {
    return waybill_SSL_get_version(((waybill_connection *)opaque)->ssl);
}

const uint8_t *waybill_tls_protocol(void *opaque, size_t *count) {
    const unsigned char *bytes = NULL;
    unsigned int length = 0;
    waybill_SSL_get0_alpn_selected(((waybill_connection *)opaque)->ssl, &bytes, &length);
    *count = length;
    return bytes;
}

int waybill_tls_is_resumed(void *opaque) {
    return waybill_SSL_session_reused(((waybill_connection *)opaque)->ssl);
}
#endif
