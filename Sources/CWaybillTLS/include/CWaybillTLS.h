// TLS by the system's OpenSSL (3, or 1.1.1), found at run time: what a stream of bytes needs of it, no more.
//
// No sockets: ciphertext comes in with the calls and is taken out between them.
#ifndef CWAYBILLTLS_H
#define CWAYBILLTLS_H

#include <stddef.h>
#include <stdint.h>

// Whether OpenSSL was found. The first call looks for it; any thread may call.
int waybill_tls_is_available(void);

// MARK: Contexts: what connections share. Functions that return int return 1 when they succeeded; those that
// fail leave OpenSSL's words in the text of so many bytes, ended by NUL.

// NULL without the library or memory. Version: 0x0303 for TLS 1.2, 0x0304 for TLS 1.3.
void *waybill_tls_context_create(int is_server, int minimum_version);
// Connections that were made with it may outlive it.
void waybill_tls_context_destroy(void *context);

// Trusts what the system trusts.
int waybill_tls_context_trust_system(void *context, char *text, size_t text_size);
// Trusts the certificates in PEM or DER.
int waybill_tls_context_trust(void *context, const uint8_t *bytes, size_t count, char *text,
                              size_t text_size);
// Shows this certificate, with those behind it as the chain. Password: NULL for none.
int waybill_tls_context_identify(void *context, const uint8_t *certificates, size_t certificates_count,
                                 const uint8_t *key, size_t key_count, const char *password, char *text,
                                 size_t text_size);
int waybill_tls_context_identify_pkcs12(void *context, const uint8_t *bytes, size_t count,
                                        const char *password, char *text, size_t text_size);
// The application protocols in the form of RFC 7301, 3.1: each with its length before it.
int waybill_tls_context_offer(void *context, const uint8_t *protocols, size_t count);
// SHA-256 hashes of 32 bytes each, of which the peer's chain must have one.
int waybill_tls_context_pin(void *context, const uint8_t *hashes, size_t count);
// A client: takes any certificate. A server: does not ask for one (the default), instead of requiring one.
void waybill_tls_context_verify(void *context, int verifies);

// MARK: Connections. One thread at a time may use one.

enum {
    WAYBILL_TLS_OK = 0,         // Done, or as far as input and space went.
    WAYBILL_TLS_CLOSED = 1,     // The peer has ended its side (close_notify).
    WAYBILL_TLS_FAILED = -1,    // See waybill_tls_failure.
};

// Host: the name that is asked for and that the certificate must have, or a literal address; NULL for neither.
void *waybill_tls_create(void *context, const char *host, int is_address);
void waybill_tls_destroy(void *connection);

// Goes on with the handshake. *is_done is set to 1 once it is over.
int waybill_tls_handshake(void *connection, const uint8_t *input, size_t input_count, size_t *consumed,
                          int *is_done);
// Decrypts as much as fits.
int waybill_tls_read(void *connection, const uint8_t *input, size_t input_count, size_t *consumed,
                     uint8_t *output, size_t space, size_t *produced);
// Encrypts until so many bytes of ciphertext wait.
int waybill_tls_write(void *connection, const uint8_t *input, size_t input_count, size_t limit,
                      size_t *consumed);
// Tells the peer that nothing more will be written.
void waybill_tls_finish(void *connection);
// How many decrypted bytes wait to be read.
size_t waybill_tls_readable_count(void *connection);

// How much ciphertext waits to leave; *bytes is valid until the next waybill_tls_sent, whatever is called meanwhile.
size_t waybill_tls_outbound(void *connection, const uint8_t **bytes);
// Takes away so many of the bytes that waybill_tls_outbound has shown.
void waybill_tls_sent(void *connection, size_t count);

// Why a call failed: the alert that the peer sent (-1 for none), the fault of its certificates (0 for none,
// else X509_V_ERR_*), the library's reason, its words, whether the peer had asked for a certificate that there
// was none of, and the issuer of the certificate at fault (NULL if it is not known; valid as long as the connection).
typedef struct {
    int alert;
    int verification;
    int reason;
    int lacked_certificate;
    const char *words;
    const char *issuer;
} waybill_tls_failure_t;
waybill_tls_failure_t waybill_tls_failure(void *connection);

// What was agreed on: the version's name, and the application protocol (*count is 0 for none).
const char *waybill_tls_version(void *connection);
const uint8_t *waybill_tls_protocol(void *connection, size_t *count);
// Whether the handshake resumed an earlier session.
int waybill_tls_is_resumed(void *connection);

// MARK: SHA-256. Each output has 32 bytes; 1 when it was computed, 0 without the library or when it refused. Any
// thread may call.

int waybill_sha256(const uint8_t *bytes, size_t count, uint8_t *output);
int waybill_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *bytes, size_t count, uint8_t *output);
// PBKDF2 (RFC 8018) with HMAC; takes some 0.3 microseconds an iteration.
int waybill_pbkdf2_sha256(const uint8_t *password, size_t password_count, const uint8_t *salt, size_t salt_count,
                          int iterations, uint8_t *output);
// Whether as many bytes are equal, in a time that does not depend on them. 0 without the library.
int waybill_is_equal(const uint8_t *one, const uint8_t *other, size_t count);

#endif
