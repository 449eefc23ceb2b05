// What the connections of one context share.
#ifndef WAYBILL_TLS_CONTEXT_H
#define WAYBILL_TLS_CONTEXT_H

#include "openssl.h"

#include <pthread.h>

typedef struct {
    SSL_CTX *ssl;
    // Connections refer to it for as long as they are there.
    int references;
    int is_server;
    // A client: takes any certificate.
    int takes_any;
    uint8_t *pins;
    size_t pin_count;
    uint8_t *protocols;
    size_t protocols_count;
    // The last session that a server gave a ticket for, and that server: the next connection resumes it.
    pthread_mutex_t lock;
    SSL_SESSION *session;
    char *session_host;
} waybill_context;

void waybill_context_release(waybill_context *context);
// The session to resume, once: a ticket is used for one connection only (RFC 8446, C.4).
SSL_SESSION *waybill_context_take_session(waybill_context *context, const char *host);
void waybill_context_keep_session(waybill_context *context, SSL_SESSION *session, const char *host);

#endif
