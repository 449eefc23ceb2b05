// One connection.
#ifndef WAYBILL_TLS_CONNECTION_H
#define WAYBILL_TLS_CONNECTION_H

#include "context.h"
#include "include/CWaybillTLS.h"

// Ciphertext that waits to leave.
typedef struct {
    uint8_t *bytes;
    size_t begin, end, capacity;
} waybill_bytes;

typedef struct {
    SSL *ssl;
    waybill_context *context;
    // Whose session it is: the host.
    char *host;
    // Lent for the time of a call.
    const uint8_t *input;
    size_t input_count;
    // What is being sent, and what has come since.
    waybill_bytes sending, waiting;
    int is_out_of_memory, is_flooded;
    int lacked_certificate;
    // The issuer of the certificate at fault; empty if it is not known.
    char issuer[256];
    // The first failure, which all calls after it repeat.
    int has_failed;
    waybill_tls_failure_t failure;
} waybill_connection;

#endif
