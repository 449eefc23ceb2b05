#ifdef __linux__
#include "openssl.h"

#include "include/CWaybillTLS.h"

#include <limits.h>

enum { DIGEST_SIZE = 32 };

int waybill_sha256(const uint8_t *bytes, size_t count, uint8_t *output) {
    unsigned int written = 0;
    if (!waybill_tls_is_available()) return 0;
    int is_done = waybill_EVP_Digest(bytes, count, output, &written, waybill_EVP_sha256(), NULL) == 1;
    if (!is_done) waybill_ERR_clear_error();
    return is_done && written == DIGEST_SIZE;
}

int waybill_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *bytes, size_t count,
                        uint8_t *output) {
    unsigned int written = 0;
    if (!waybill_tls_is_available() || key_count > INT_MAX) return 0;
    int is_done = waybill_HMAC(waybill_EVP_sha256(), key, (int)key_count, bytes, count, output, &written) != NULL;
    if (!is_done) waybill_ERR_clear_error();
    return is_done && written == DIGEST_SIZE;
}

int waybill_pbkdf2_sha256(const uint8_t *password, size_t password_count, const uint8_t *salt, size_t salt_count,
                          int iterations, uint8_t *output) {
    if (!waybill_tls_is_available() || password_count > INT_MAX || salt_count > INT_MAX || iterations < 1) return 0;
    int is_done = waybill_PKCS5_PBKDF2_HMAC((const char *)password, (int)password_count, salt, (int)salt_count,
                                            iterations, waybill_EVP_sha256(), DIGEST_SIZE, output) == 1;
    if (!is_done) waybill_ERR_clear_error();
    return is_done;
}

int waybill_is_equal(const uint8_t *one, const uint8_t *other, size_t count) {
    return waybill_tls_is_available() && waybill_CRYPTO_memcmp(one, other, count) == 0;
}
#endif
