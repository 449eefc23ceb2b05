#ifdef __linux__
#include "openssl.h"

#include "include/CWaybillTLS.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define F(result, name, arguments) result(*waybill_##name) arguments;
WAYBILL_OPENSSL_FUNCTIONS(F)
#undef F

static int is_available;

static int find(void *library, const char *name, void *target) {
    void *symbol = dlsym(library, name);
    memcpy(target, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void load(void) {
    static const char *const names[] = {"libssl.so.3", "libssl.so.1.1", "libssl.so"};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        // Never closed: other threads may be in it until the process ends. What it depends on, libcrypto, is
        // looked through with it.
        void *library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) continue;
        int has_all = 1;
#define F(result, name, arguments) has_all = find(library, #name, &waybill_##name) && has_all;
        WAYBILL_OPENSSL_FUNCTIONS(F)
#undef F
        // 1.1.1 is the first with TLS 1.3.
        if (!has_all || waybill_OpenSSL_version_num() < 0x10101000L) continue;
        // Not to be torn down by the C library's exit handlers, while the loop's thread is in it.
        if (waybill_OPENSSL_init_ssl(
                INIT_NO_ATEXIT | INIT_LOAD_SSL_STRINGS | INIT_LOAD_CRYPTO_STRINGS, NULL) != 1)
            continue;
        is_available = waybill_make_bio_method();
        return;
    }
}

int waybill_tls_is_available(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_available;
}
#endif
