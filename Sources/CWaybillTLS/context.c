#ifdef __linux__
#include "context.h"

#include "connection.h"
#include "include/CWaybillTLS.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void tell(char *text, size_t text_size, const char *fallback) {
    if (text_size == 0) return;
    unsigned long error = waybill_ERR_peek_error();
    const char *words = error == 0 ? NULL : waybill_ERR_reason_error_string(error);
    strncpy(text, words == NULL ? fallback : words, text_size - 1);
    text[text_size - 1] = 0;
    waybill_ERR_clear_error();
}

// MARK: Verification

static int has_pin(const waybill_context *context, const X509 *certificate) {
    X509_PUBKEY *key = waybill_X509_get_X509_PUBKEY(certificate);
    int count = key == NULL ? 0 : waybill_i2d_X509_PUBKEY(key, NULL);
    if (count <= 0) return 0;
    unsigned char *bytes = malloc((size_t)count), *end = bytes, hash[64];
    if (bytes == NULL) return 0;
    unsigned int hash_size = 0;
    int matches = 0;
    if (waybill_i2d_X509_PUBKEY(key, &end) == count
        && waybill_EVP_Digest(bytes, (size_t)count, hash, &hash_size, waybill_EVP_sha256(), NULL) == 1) {
        for (size_t index = 0; index < context->pin_count; index++)
            matches |= hash_size == 32 && memcmp(hash, context->pins + 32 * index, 32) == 0;
    }
    free(bytes);
    return matches;
}

// Tells a certificate for another host from one that names its host in the common name alone, which does not count
// (RFC 9525, 2). Names of mail are never checked here, so that error number is free.
static void note_missing_names(X509_STORE_CTX *store) {
    int error = waybill_X509_STORE_CTX_get_error(store);
    if (error != X509_HOSTNAME_MISMATCH && error != X509_IP_ADDRESS_MISMATCH) return;
    const X509 *certificate = waybill_X509_STORE_CTX_get0_cert(store);
    if (certificate != NULL && waybill_X509_get_ext_by_NID(certificate, NID_SUBJECT_ALT_NAME, -1) < 0)
        waybill_X509_STORE_CTX_set_error(store, X509_EMAIL_MISMATCH);
}

// The issuer says which authority would have to be trusted.
static void note_issuer(X509_STORE_CTX *store) {
    SSL *ssl = waybill_X509_STORE_CTX_get_ex_data(store, waybill_SSL_get_ex_data_X509_STORE_CTX_idx());
    waybill_connection *connection = ssl == NULL ? NULL : waybill_SSL_get_ex_data(ssl, 0);
    const X509 *certificate = waybill_X509_STORE_CTX_get_current_cert(store);
    if (connection == NULL || certificate == NULL) return;
    waybill_X509_NAME_oneline(waybill_X509_get_issuer_name(certificate), connection->issuer,
                              sizeof connection->issuer);
}

// Stands in place of OpenSSL's own verification, which it calls: so that the pins count before this side has
// said anything of itself.
static int verify(X509_STORE_CTX *store, void *argument) {
    waybill_context *context = argument;
    int is_pinned = context->pin_count == 0;
    if (context->takes_any) {
        is_pinned = is_pinned || has_pin(context, waybill_X509_STORE_CTX_get0_cert(store));
        if (is_pinned) waybill_X509_STORE_CTX_set_error(store, 0);
    } else {
        int result = waybill_X509_verify_cert(store);
        if (result <= 0) {
            note_missing_names(store);
            note_issuer(store);
            return result;
        }
        STACK *chain = waybill_X509_STORE_CTX_get0_chain(store);
        for (int index = 0; !is_pinned && index < waybill_OPENSSL_sk_num(chain); index++)
            is_pinned = has_pin(context, waybill_OPENSSL_sk_value(chain, index));
    }
    if (!is_pinned) waybill_X509_STORE_CTX_set_error(store, X509_APPLICATION_VERIFICATION);
    return is_pinned;
}

// MARK: Sessions

static int keep(SSL *ssl, SSL_SESSION *session) {
    waybill_connection *connection = waybill_SSL_get_ex_data(ssl, 0);
    if (connection == NULL || connection->host == NULL) return 0;
    waybill_context_keep_session(connection->context, session, connection->host);
    return 1;
}

void waybill_context_keep_session(waybill_context *context, SSL_SESSION *session, const char *host) {
    pthread_mutex_lock(&context->lock);
    SSL_SESSION *old = context->session;
    context->session = session;
    if (context->session_host == NULL || strcmp(context->session_host, host) != 0) {
        free(context->session_host);
        context->session_host = strdup(host);
    }
    pthread_mutex_unlock(&context->lock);
    if (old != NULL) waybill_SSL_SESSION_free(old);
}

SSL_SESSION *waybill_context_take_session(waybill_context *context, const char *host) {
    SSL_SESSION *session = NULL;
    pthread_mutex_lock(&context->lock);
    if (context->session_host != NULL && strcmp(context->session_host, host) == 0) {
        session = context->session;
        context->session = NULL;
    }
    pthread_mutex_unlock(&context->lock);
    return session;
}

// MARK: Life

// Called when the server asks and there is nothing to show.
static int note_asked(SSL *ssl, X509 **certificate, EVP_PKEY **key) {
    (void)certificate, (void)key;
    waybill_connection *connection = waybill_SSL_get_ex_data(ssl, 0);
    if (connection != NULL) connection->lacked_certificate = 1;
    return 0;
}

// A server's choice: the first of its own that the client offers.
static int select_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_count,
                           const unsigned char *offered, unsigned int offered_count, void *argument) {
    (void)ssl;
    waybill_context *context = argument;
    for (size_t own = 0; own < context->protocols_count; own += 1 + context->protocols[own]) {
        for (unsigned int other = 0; other < offered_count; other += 1 + offered[other]) {
            if (offered[other] != context->protocols[own]
                || memcmp(offered + other + 1, context->protocols + own + 1, offered[other]) != 0)
                continue;
            *chosen = offered + other + 1;
            *chosen_count = offered[other];
            return TLSEXT_ERR_OK;
        }
    }
    return TLSEXT_ERR_ALERT_FATAL;
}

void *waybill_tls_context_create(int is_server, int minimum_version) {
    if (!waybill_tls_is_available()) return NULL;
    waybill_context *context = calloc(1, sizeof *context);
    if (context == NULL) return NULL;
    context->ssl = waybill_SSL_CTX_new(waybill_TLS_method());
    if (context->ssl == NULL) {
        free(context);
        return NULL;
    }
    context->references = 1;
    context->is_server = is_server;
    pthread_mutex_init(&context->lock, NULL);
    SSL_CTX *ssl = context->ssl;
    waybill_SSL_CTX_ctrl(ssl, CTRL_SET_MIN_PROTO_VERSION, minimum_version, NULL);
    waybill_SSL_CTX_ctrl(
        ssl, CTRL_MODE,
        MODE_ENABLE_PARTIAL_WRITE | MODE_ACCEPT_MOVING_WRITE_BUFFER | MODE_RELEASE_BUFFERS, NULL);
    waybill_SSL_CTX_set_options(ssl, OP_NO_RENEGOTIATION);
    // 112 bits: no SHA-1, no RSA below 2048 (Debian's own default; 1 elsewhere). A server, which only tests have,
    // shows whatever it is given.
    if (is_server || waybill_SSL_CTX_get_security_level(ssl) < 2)
        waybill_SSL_CTX_set_security_level(ssl, is_server ? 0 : 2);
    waybill_SSL_CTX_set_verify(ssl, is_server ? VERIFY_NONE : VERIFY_PEER, NULL);
    waybill_SSL_CTX_set_cert_verify_callback(ssl, verify, context);
    if (is_server) {
        waybill_SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"waybill", 7);
    } else {
        waybill_SSL_CTX_set_client_cert_cb(ssl, note_asked);
        waybill_SSL_CTX_ctrl(ssl, CTRL_SESS_CACHE_MODE, SESS_CACHE_CLIENT_NO_INTERNAL, NULL);
        waybill_SSL_CTX_sess_set_new_cb(ssl, keep);
    }
    return context;
}

void waybill_context_release(waybill_context *context) {
    if (__atomic_sub_fetch(&context->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (context->session != NULL) waybill_SSL_SESSION_free(context->session);
    waybill_SSL_CTX_free(context->ssl);
    pthread_mutex_destroy(&context->lock);
    free(context->session_host);
    free(context->pins);
    free(context->protocols);
    free(context);
}

void waybill_tls_context_destroy(void *context) {
    if (context != NULL) waybill_context_release(context);
}

// MARK: Options

// Made once: reading some 150 certificates takes milliseconds.
static X509_STORE *system_store;
static void load_system_store(void) {
    X509_STORE *store = waybill_X509_STORE_new();
    if (store == NULL) return;
    if (waybill_X509_STORE_set_default_paths(store) == 1) {
        system_store = store;
    } else {
        waybill_X509_STORE_free(store);
    }
}

int waybill_tls_context_trust_system(void *opaque, char *text, size_t text_size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    waybill_context *context = opaque;
    waybill_ERR_clear_error();
    pthread_once(&once, load_system_store);
    if (system_store == NULL) {
        tell(text, text_size, "the system's certificates cannot be read");
        return 0;
    }
    waybill_SSL_CTX_set1_cert_store(context->ssl, system_store);
    return 1;
}

static int is_pem(const uint8_t *bytes, size_t count) {
    static const char mark[] = "-----BEGIN ";
    for (size_t index = 0; index + sizeof mark - 1 <= count; index++)
        if (memcmp(bytes + index, mark, sizeof mark - 1) == 0) return 1;
    return 0;
}

// Without a password, nobody is to be asked at the terminal.
static int give_password(char *buffer, int size, int is_writing, void *password) {
    (void)is_writing;
    if (password == NULL) return -1;
    size_t count = strlen(password);
    if (count > (size_t)size) return -1;
    memcpy(buffer, password, count);
    return (int)count;
}

// Calls `take` with each certificate, in PEM or DER. Returns how many there were, -1 if one was refused.
static int each_certificate(const uint8_t *bytes, size_t count,
                            int (*take)(waybill_context *, X509 *, int), waybill_context *context) {
    if (count > INT_MAX) return 0;
    int found = 0;
    if (!is_pem(bytes, count)) {
        const unsigned char *next = bytes;
        X509 *certificate = waybill_d2i_X509(NULL, &next, (long)count);
        if (certificate == NULL) return 0;
        // Nothing may follow: it would be left out without a word.
        found = next == bytes + count && take(context, certificate, 0) ? 1 : -1;
        waybill_X509_free(certificate);
        return found;
    }
    BIO *source = waybill_BIO_new_mem_buf(bytes, (int)count);
    if (source == NULL) return 0;
    X509 *certificate;
    while (found >= 0
           && (certificate = waybill_PEM_read_bio_X509_AUX(source, NULL, give_password, NULL)) != NULL) {
        found = take(context, certificate, found) ? found + 1 : -1;
        waybill_X509_free(certificate);
    }
    waybill_BIO_free(source);
    if (found <= 0) return found;
    // The end of the file counts as an error with OpenSSL; any other is of a certificate that cannot be read.
    if (reason(waybill_ERR_peek_last_error()) != REASON_NO_START_LINE) return -1;
    waybill_ERR_clear_error();
    return found;
}

static int trust_one(waybill_context *context, X509 *certificate, int index) {
    (void)index;
    return waybill_X509_STORE_add_cert(waybill_SSL_CTX_get_cert_store(context->ssl), certificate) == 1;
}

int waybill_tls_context_trust(void *context, const uint8_t *bytes, size_t count, char *text,
                              size_t text_size) {
    waybill_ERR_clear_error();
    if (each_certificate(bytes, count, trust_one, context) > 0) {
        // Whoever is named is trusted, be it an authority's authority or one below it.
        X509_STORE *store = waybill_SSL_CTX_get_cert_store(((waybill_context *)context)->ssl);
        waybill_X509_STORE_set_flags(store, X509_PARTIAL_CHAIN);
        return 1;
    }
    tell(text, text_size, "there is no certificate");
    return 0;
}

static int show_one(waybill_context *context, X509 *certificate, int index) {
    if (index == 0) return waybill_SSL_CTX_use_certificate(context->ssl, certificate) == 1;
    return waybill_SSL_CTX_ctrl(context->ssl, CTRL_CHAIN_CERT, 1, certificate) == 1;
}

static EVP_PKEY *read_key(const uint8_t *bytes, size_t count, const char *password) {
    if (count > INT_MAX) return NULL;
    if (!is_pem(bytes, count)) {
        const unsigned char *next = bytes;
        return waybill_d2i_AutoPrivateKey(NULL, &next, (long)count);
    }
    BIO *source = waybill_BIO_new_mem_buf(bytes, (int)count);
    if (source == NULL) return NULL;
    EVP_PKEY *key = waybill_PEM_read_bio_PrivateKey(source, NULL, give_password, (void *)password);
    waybill_BIO_free(source);
    return key;
}

static int use_key(waybill_context *context, EVP_PKEY *key) {
    return key != NULL && waybill_SSL_CTX_use_PrivateKey(context->ssl, key) == 1
        && waybill_SSL_CTX_check_private_key(context->ssl) == 1;
}

int waybill_tls_context_identify(void *context, const uint8_t *certificates, size_t certificates_count,
                                 const uint8_t *key_bytes, size_t key_count, const char *password,
                                 char *text, size_t text_size) {
    waybill_ERR_clear_error();
    if (each_certificate(certificates, certificates_count, show_one, context) <= 0) {
        tell(text, text_size, "there is no certificate");
        return 0;
    }
    EVP_PKEY *key = read_key(key_bytes, key_count, password);
    int is_used = use_key(context, key);
    if (key != NULL) waybill_EVP_PKEY_free(key);
    if (!is_used) tell(text, text_size, "there is no private key");
    return is_used;
}

static void free_certificate(void *certificate) { waybill_X509_free(certificate); }

int waybill_tls_context_identify_pkcs12(void *context, const uint8_t *bytes, size_t count,
                                        const char *password, char *text, size_t text_size) {
    waybill_ERR_clear_error();
    const unsigned char *next = bytes;
    PKCS12 *file = count > INT_MAX ? NULL : waybill_d2i_PKCS12(NULL, &next, (long)count);
    EVP_PKEY *key = NULL;
    X509 *certificate = NULL;
    STACK *others = NULL;
    int is_used = file != NULL && waybill_PKCS12_parse(file, password, &key, &certificate, &others) == 1
        && certificate != NULL && show_one(context, certificate, 0) && use_key(context, key);
    for (int index = 0; is_used && others != NULL && index < waybill_OPENSSL_sk_num(others); index++)
        is_used = show_one(context, waybill_OPENSSL_sk_value(others, index), 1);
    if (!is_used) tell(text, text_size, "there is no certificate with its key");
    if (key != NULL) waybill_EVP_PKEY_free(key);
    if (certificate != NULL) waybill_X509_free(certificate);
    if (others != NULL) waybill_OPENSSL_sk_pop_free(others, free_certificate);
    if (file != NULL) waybill_PKCS12_free(file);
    return is_used;
}

static int copy(uint8_t **target, const uint8_t *bytes, size_t count) {
    *target = malloc(count == 0 ? 1 : count);
    if (*target == NULL) return 0;
    memcpy(*target, bytes, count);
    return 1;
}

int waybill_tls_context_offer(void *opaque, const uint8_t *protocols, size_t count) {
    waybill_context *context = opaque;
    if (count == 0) return 1;
    // OpenSSL returns zero here when it succeeds.
    if (!context->is_server)
        return count <= UINT_MAX
            && waybill_SSL_CTX_set_alpn_protos(context->ssl, protocols, (unsigned int)count) == 0;
    if (!copy(&context->protocols, protocols, count)) return 0;
    context->protocols_count = count;
    waybill_SSL_CTX_set_alpn_select_cb(context->ssl, select_protocol, context);
    return 1;
}

int waybill_tls_context_pin(void *opaque, const uint8_t *hashes, size_t count) {
    waybill_context *context = opaque;
    if (count == 0) return 1;
    if (!copy(&context->pins, hashes, count * 32)) return 0;
    context->pin_count = count;
    return 1;
}

void waybill_tls_context_verify(void *opaque, int verifies) {
    waybill_context *context = opaque;
    if (context->is_server) {
        int mode = verifies ? VERIFY_PEER | VERIFY_FAIL_IF_NO_PEER_CERT : VERIFY_NONE;
        waybill_SSL_CTX_set_verify(context->ssl, mode, NULL);
    } else {
        context->takes_any = !verifies;
    }
}
#endif
