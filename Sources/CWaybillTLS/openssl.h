// The parts of OpenSSL's binary interface that are used, as its manual pages declare them (1.1.1 and 3).
#ifndef WAYBILL_OPENSSL_H
#define WAYBILL_OPENSSL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_session_st SSL_SESSION;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct x509_st X509;
typedef struct x509_store_st X509_STORE;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct x509_verify_param_st X509_VERIFY_PARAM;
typedef struct X509_name_st X509_NAME;
typedef struct x509_pubkey_st X509_PUBKEY;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct evp_md_st EVP_MD;
typedef struct pkcs12_st PKCS12;
typedef struct stack_st STACK;
typedef int password_callback(char *, int, int, void *);

// Each function: its result, its name, what it takes.
#define WAYBILL_OPENSSL_FUNCTIONS(F) \
    F(unsigned long, OpenSSL_version_num, (void)) \
    F(int, OPENSSL_init_ssl, (uint64_t, const void *)) \
    F(const SSL_METHOD *, TLS_method, (void)) \
    F(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *)) \
    F(void, SSL_CTX_free, (SSL_CTX *)) \
    F(long, SSL_CTX_ctrl, (SSL_CTX *, int, long, void *)) \
    F(uint64_t, SSL_CTX_set_options, (SSL_CTX *, uint64_t)) \
    F(void, SSL_CTX_set_security_level, (SSL_CTX *, int)) \
    F(int, SSL_CTX_get_security_level, (const SSL_CTX *)) \
    F(void, SSL_CTX_set_verify, (SSL_CTX *, int, int (*)(int, X509_STORE_CTX *))) \
    F(void, SSL_CTX_set_cert_verify_callback, (SSL_CTX *, int (*)(X509_STORE_CTX *, void *), void *)) \
    F(void, SSL_CTX_set_client_cert_cb, (SSL_CTX *, int (*)(SSL *, X509 **, EVP_PKEY **))) \
    F(void, SSL_CTX_sess_set_new_cb, (SSL_CTX *, int (*)(SSL *, SSL_SESSION *))) \
    F(void, SSL_CTX_set_alpn_select_cb, (SSL_CTX *, int (*)(SSL *, const unsigned char **, unsigned char *, const unsigned char *, unsigned int, void *), void *)) \
    F(int, SSL_CTX_set_alpn_protos, (SSL_CTX *, const unsigned char *, unsigned int)) \
    F(int, SSL_CTX_set_session_id_context, (SSL_CTX *, const unsigned char *, unsigned int)) \
    F(X509_STORE *, SSL_CTX_get_cert_store, (const SSL_CTX *)) \
    F(void, SSL_CTX_set1_cert_store, (SSL_CTX *, X509_STORE *)) \
    F(int, SSL_CTX_use_certificate, (SSL_CTX *, X509 *)) \
    F(int, SSL_CTX_use_PrivateKey, (SSL_CTX *, EVP_PKEY *)) \
    F(int, SSL_CTX_check_private_key, (const SSL_CTX *)) \
    F(SSL *, SSL_new, (SSL_CTX *)) \
    F(void, SSL_free, (SSL *)) \
    F(long, SSL_ctrl, (SSL *, int, long, void *)) \
    F(int, SSL_set_ex_data, (SSL *, int, void *)) \
    F(void *, SSL_get_ex_data, (const SSL *, int)) \
    F(void, SSL_set_bio, (SSL *, BIO *, BIO *)) \
    F(void, SSL_set_connect_state, (SSL *)) \
    F(void, SSL_set_accept_state, (SSL *)) \
    F(X509_VERIFY_PARAM *, SSL_get0_param, (SSL *)) \
    F(int, SSL_do_handshake, (SSL *)) \
    F(int, SSL_read, (SSL *, void *, int)) \
    F(int, SSL_write, (SSL *, const void *, int)) \
    F(int, SSL_shutdown, (SSL *)) \
    F(int, SSL_pending, (const SSL *)) \
    F(int, SSL_get_error, (const SSL *, int)) \
    F(long, SSL_get_verify_result, (const SSL *)) \
    F(const char *, SSL_get_version, (const SSL *)) \
    F(void, SSL_get0_alpn_selected, (const SSL *, const unsigned char **, unsigned int *)) \
    F(int, SSL_set_session, (SSL *, SSL_SESSION *)) \
    F(void, SSL_SESSION_free, (SSL_SESSION *)) \
    F(int, SSL_session_reused, (const SSL *)) \
    F(int, BIO_get_new_index, (void)) \
    F(BIO_METHOD *, BIO_meth_new, (int, const char *)) \
    F(int, BIO_meth_set_read, (BIO_METHOD *, int (*)(BIO *, char *, int))) \
    F(int, BIO_meth_set_write, (BIO_METHOD *, int (*)(BIO *, const char *, int))) \
    F(int, BIO_meth_set_ctrl, (BIO_METHOD *, long (*)(BIO *, int, long, void *))) \
    F(BIO *, BIO_new, (const BIO_METHOD *)) \
    F(int, BIO_free, (BIO *)) \
    F(void, BIO_set_data, (BIO *, void *)) \
    F(void *, BIO_get_data, (BIO *)) \
    F(void, BIO_set_init, (BIO *, int)) \
    F(void, BIO_set_flags, (BIO *, int)) \
    F(void, BIO_clear_flags, (BIO *, int)) \
    F(BIO *, BIO_new_mem_buf, (const void *, int)) \
    F(X509 *, PEM_read_bio_X509_AUX, (BIO *, X509 **, password_callback *, void *)) \
    F(EVP_PKEY *, PEM_read_bio_PrivateKey, (BIO *, EVP_PKEY **, password_callback *, void *)) \
    F(X509 *, d2i_X509, (X509 **, const unsigned char **, long)) \
    F(EVP_PKEY *, d2i_AutoPrivateKey, (EVP_PKEY **, const unsigned char **, long)) \
    F(PKCS12 *, d2i_PKCS12, (PKCS12 **, const unsigned char **, long)) \
    F(int, PKCS12_parse, (PKCS12 *, const char *, EVP_PKEY **, X509 **, STACK **)) \
    F(void, PKCS12_free, (PKCS12 *)) \
    F(void, X509_free, (X509 *)) \
    F(void, EVP_PKEY_free, (EVP_PKEY *)) \
    F(X509_PUBKEY *, X509_get_X509_PUBKEY, (const X509 *)) \
    F(int, i2d_X509_PUBKEY, (const X509_PUBKEY *, unsigned char **)) \
    F(X509_STORE *, X509_STORE_new, (void)) \
    F(void, X509_STORE_free, (X509_STORE *)) \
    F(int, X509_STORE_add_cert, (X509_STORE *, X509 *)) \
    F(int, X509_STORE_set_flags, (X509_STORE *, unsigned long)) \
    F(int, X509_STORE_set_default_paths, (X509_STORE *)) \
    F(STACK *, X509_STORE_CTX_get0_chain, (const X509_STORE_CTX *)) \
    F(X509 *, X509_STORE_CTX_get0_cert, (const X509_STORE_CTX *)) \
    F(void, X509_STORE_CTX_set_error, (X509_STORE_CTX *, int)) \
    F(int, X509_STORE_CTX_get_error, (const X509_STORE_CTX *)) \
    F(X509 *, X509_STORE_CTX_get_current_cert, (const X509_STORE_CTX *)) \
    F(void *, X509_STORE_CTX_get_ex_data, (const X509_STORE_CTX *, int)) \
    F(int, SSL_get_ex_data_X509_STORE_CTX_idx, (void)) \
    F(X509_NAME *, X509_get_issuer_name, (const X509 *)) \
    F(char *, X509_NAME_oneline, (const X509_NAME *, char *, int)) \
    F(int, X509_get_ext_by_NID, (const X509 *, int, int)) \
    F(int, X509_verify_cert, (X509_STORE_CTX *)) \
    F(const char *, X509_verify_cert_error_string, (long)) \
    F(int, X509_VERIFY_PARAM_set1_host, (X509_VERIFY_PARAM *, const char *, size_t)) \
    F(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM *, const char *)) \
    F(void, X509_VERIFY_PARAM_set_hostflags, (X509_VERIFY_PARAM *, unsigned int)) \
    F(int, OPENSSL_sk_num, (const STACK *)) \
    F(void *, OPENSSL_sk_value, (const STACK *, int)) \
    F(void, OPENSSL_sk_pop_free, (STACK *, void (*)(void *))) \
    F(const EVP_MD *, EVP_sha256, (void)) \
    F(int, EVP_Digest, (const void *, size_t, unsigned char *, unsigned int *, const EVP_MD *, void *)) \
    F(unsigned char *, HMAC, (const EVP_MD *, const void *, int, const unsigned char *, size_t, unsigned char *, unsigned int *)) \
    F(int, PKCS5_PBKDF2_HMAC, (const char *, int, const unsigned char *, int, int, const EVP_MD *, int, unsigned char *)) \
    F(int, CRYPTO_memcmp, (const void *, const void *, size_t)) \
    F(unsigned long, ERR_peek_error, (void)) \
    F(unsigned long, ERR_peek_last_error, (void)) \
    F(const char *, ERR_reason_error_string, (unsigned long)) \
    F(void, ERR_clear_error, (void))

// Constants of its headers, the same in both versions.
enum {
    INIT_NO_ATEXIT = 0x00080000,
    INIT_LOAD_CRYPTO_STRINGS = 0x00000002,
    INIT_LOAD_SSL_STRINGS = 0x00200000,
    CTRL_MODE = 33,
    CTRL_SESS_CACHE_MODE = 44,
    CTRL_SET_TLSEXT_HOSTNAME = 55,
    CTRL_CHAIN_CERT = 89,
    CTRL_SET_MIN_PROTO_VERSION = 123,
    MODE_ENABLE_PARTIAL_WRITE = 0x1,
    MODE_ACCEPT_MOVING_WRITE_BUFFER = 0x2,
    MODE_RELEASE_BUFFERS = 0x10,
    OP_NO_RENEGOTIATION = 0x40000000,
    SESS_CACHE_CLIENT_NO_INTERNAL = 0x1 | 0x300,
    VERIFY_NONE = 0,
    VERIFY_PEER = 1,
    VERIFY_FAIL_IF_NO_PEER_CERT = 2,
    ERROR_WANT_READ = 2,
    ERROR_ZERO_RETURN = 6,
    TLSEXT_ERR_OK = 0,
    TLSEXT_ERR_ALERT_FATAL = 2,
    X509_CHECK_NO_PARTIAL_WILDCARDS = 0x4,
    X509_CHECK_NEVER_CHECK_SUBJECT = 0x20,
    X509_PARTIAL_CHAIN = 0x80000,
    X509_APPLICATION_VERIFICATION = 50,
    X509_HOSTNAME_MISMATCH = 62,
    X509_EMAIL_MISMATCH = 63,
    X509_IP_ADDRESS_MISMATCH = 64,
    NID_SUBJECT_ALT_NAME = 85,
    BIO_SOURCE_SINK = 0x0400,
    BIO_READ = 0x01,
    BIO_RWS_AND_RETRY = 0x0F,
    BIO_RETRY = 0x08,
    BIO_FLUSH = 11,
    // Of PEM: there is no further one.
    REASON_NO_START_LINE = 108,
    // An alert that the peer sent is its number and this.
    REASON_ALERT = 1000,
};

// 3 keeps the reason in 23 bits, 1.1.1 in 12; all that are asked for are below 4096.
static inline int reason(unsigned long error) { return (int)(error & 0xFFF); }

#define F(result, name, arguments) extern result(*waybill_##name) arguments;
WAYBILL_OPENSSL_FUNCTIONS(F)
#undef F

// How a stream's bytes pass through OpenSSL; set by the library's first use.
extern BIO_METHOD *waybill_bio_method;
int waybill_make_bio_method(void);

#endif
