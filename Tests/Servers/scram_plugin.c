/* A plugin for Mosquitto with the authentication method SCRAM-SHA-256 (RFC 5802, RFC 7677) for one user, that of
 * `plugin_opt_user` and `plugin_opt_password`, with `plugin_opt_iterations`. With the client identifier `liar` the
 * signature of the server is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

enum { DIGEST_SIZE = 32, MESSAGE_SIZE = 512, SALT_SIZE = 16 };

/* An exchange that is under way. */
struct exchange {
    const struct mosquitto *client;
    char bare[MESSAGE_SIZE];
    char first[2 * MESSAGE_SIZE];
    char nonce[MESSAGE_SIZE];
    struct exchange *next;
};

static mosquitto_plugin_id_t *identifier;
static struct exchange *exchanges;
static const char *user = "";
static unsigned char stored_key[DIGEST_SIZE], server_key[DIGEST_SIZE];
static char salt_text[64];
static int iterations = 4096;

static void forget(const struct mosquitto *client)
{
    for (struct exchange **link = &exchanges; *link != NULL;) {
        struct exchange *exchange = *link;
        if (exchange->client == client) {
            *link = exchange->next;
            free(exchange);
        } else {
            link = &exchange->next;
        }
    }
}

static void hmac(const unsigned char *key, const char *text, unsigned char *output)
{
    unsigned int length = DIGEST_SIZE;
    HMAC(EVP_sha256(), key, DIGEST_SIZE, (const unsigned char *)text, strlen(text), output, &length);
}

/* The data of the event as text; 0 if it is none, or too long. */
static int text_of(const struct mosquitto_evt_extended_auth *event, char *text)
{
    if (event->data_in == NULL || event->data_in_len >= MESSAGE_SIZE) return 0;
    memcpy(text, event->data_in, event->data_in_len);
    text[event->data_in_len] = 0;
    return strlen(text) == event->data_in_len;
}

/* The broker frees it. */
static int answer(struct mosquitto_evt_extended_auth *event, const char *text, int result)
{
    size_t length = strlen(text);
    event->data_out = malloc(length);
    if (event->data_out == NULL) return MOSQ_ERR_NOMEM;
    memcpy(event->data_out, text, length);
    event->data_out_len = (uint16_t)length;
    return result;
}

static int begin(int kind, void *data, void *user_data)
{
    struct mosquitto_evt_extended_auth *event = data;
    struct exchange *exchange;
    unsigned char random[18];
    char text[MESSAGE_SIZE], nonce[32], *mark;

    (void)kind;
    (void)user_data;
    forget(event->client);
    if (event->auth_method == NULL || strcmp(event->auth_method, "SCRAM-SHA-256") != 0) return MOSQ_ERR_NOT_SUPPORTED;
    if (!text_of(event, text) || strncmp(text, "n,,n=", 5) != 0) return MOSQ_ERR_AUTH;
    mark = strstr(text, ",r=");
    if (mark == NULL || strchr(mark + 1, ',') != NULL || mark[3] == 0) return MOSQ_ERR_AUTH;
    if (strlen(user) != (size_t)(mark - text - 5) || strncmp(text + 5, user, strlen(user)) != 0) return MOSQ_ERR_AUTH;
    if (RAND_bytes(random, sizeof random) != 1) return MOSQ_ERR_UNKNOWN;
    EVP_EncodeBlock((unsigned char *)nonce, random, sizeof random);
    exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL) return MOSQ_ERR_NOMEM;
    exchange->client = event->client;
    snprintf(exchange->bare, sizeof exchange->bare, "%s", text + 3);
    if ((size_t)snprintf(exchange->nonce, sizeof exchange->nonce, "%s%s", mark + 3, nonce) >= sizeof exchange->nonce) {
        free(exchange);
        return MOSQ_ERR_AUTH;
    }
    snprintf(exchange->first, sizeof exchange->first, "r=%s,s=%s,i=%d", exchange->nonce, salt_text, iterations);
    exchange->next = exchanges;
    exchanges = exchange;
    return answer(event, exchange->first, MOSQ_ERR_AUTH_CONTINUE);
}

/* Whether the client's last message proves the password; the server's signature of it. */
static int verify(const struct exchange *exchange, char *text, unsigned char *signature)
{
    char expected[2 * MESSAGE_SIZE], message[4 * MESSAGE_SIZE];
    unsigned char proof[DIGEST_SIZE + 3], code[DIGEST_SIZE], key[DIGEST_SIZE];
    char *mark = strstr(text, ",p=");

    if (mark == NULL || strlen(mark + 3) != 44 || EVP_DecodeBlock(proof, (unsigned char *)mark + 3, 44) < DIGEST_SIZE)
        return 0;
    *mark = 0;
    snprintf(expected, sizeof expected, "c=biws,r=%s", exchange->nonce);
    if (strcmp(text, expected) != 0) return 0;
    snprintf(message, sizeof message, "%s,%s,%s", exchange->bare, exchange->first, text);
    hmac(stored_key, message, code);
    for (int index = 0; index < DIGEST_SIZE; index++) proof[index] ^= code[index];
    if (EVP_Digest(proof, DIGEST_SIZE, key, NULL, EVP_sha256(), NULL) != 1) return 0;
    hmac(server_key, message, signature);
    return memcmp(key, stored_key, DIGEST_SIZE) == 0;
}

static int proceed(int kind, void *data, void *user_data)
{
    struct mosquitto_evt_extended_auth *event = data;
    struct exchange *exchange = exchanges;
    unsigned char signature[DIGEST_SIZE];
    char text[MESSAGE_SIZE], final[64] = "v=";
    const char *name = mosquitto_client_id(event->client);
    int is_right;

    (void)kind;
    (void)user_data;
    while (exchange != NULL && exchange->client != event->client) exchange = exchange->next;
    is_right = exchange != NULL && text_of(event, text) && verify(exchange, text, signature);
    forget(event->client);
    if (!is_right) return MOSQ_ERR_AUTH;
    if (name != NULL && strcmp(name, "liar") == 0) signature[0] ^= 1;
    EVP_EncodeBlock((unsigned char *)final + 2, signature, DIGEST_SIZE);
    return answer(event, final, MOSQ_ERR_SUCCESS);
}

static int leave(int kind, void *data, void *user_data)
{
    struct mosquitto_evt_disconnect *event = data;

    (void)kind;
    (void)user_data;
    forget(event->client);
    return MOSQ_ERR_SUCCESS;
}

int mosquitto_plugin_version(int count, const int *versions)
{
    for (int index = 0; index < count; index++) {
        if (versions[index] == 5) return 5;
    }
    return -1;
}

int mosquitto_plugin_init(mosquitto_plugin_id_t *own, void **user_data, struct mosquitto_opt *options, int count)
{
    const char *password = "";
    unsigned char salt[SALT_SIZE], salted[DIGEST_SIZE], client_key[DIGEST_SIZE];

    (void)user_data;
    identifier = own;
    for (int index = 0; index < count; index++) {
        if (strcmp(options[index].key, "user") == 0) user = options[index].value;
        if (strcmp(options[index].key, "password") == 0) password = options[index].value;
        if (strcmp(options[index].key, "iterations") == 0) iterations = atoi(options[index].value);
    }
    if (RAND_bytes(salt, SALT_SIZE) != 1) return MOSQ_ERR_UNKNOWN;
    EVP_EncodeBlock((unsigned char *)salt_text, salt, SALT_SIZE);
    if (PKCS5_PBKDF2_HMAC(password, (int)strlen(password), salt, SALT_SIZE, iterations, EVP_sha256(), DIGEST_SIZE,
            salted) != 1)
        return MOSQ_ERR_UNKNOWN;
    hmac(salted, "Client Key", client_key);
    hmac(salted, "Server Key", server_key);
    if (EVP_Digest(client_key, DIGEST_SIZE, stored_key, NULL, EVP_sha256(), NULL) != 1) return MOSQ_ERR_UNKNOWN;
    if (mosquitto_callback_register(identifier, MOSQ_EVT_EXT_AUTH_START, begin, NULL, NULL) != MOSQ_ERR_SUCCESS
        || mosquitto_callback_register(identifier, MOSQ_EVT_EXT_AUTH_CONTINUE, proceed, NULL, NULL) != MOSQ_ERR_SUCCESS)
        return MOSQ_ERR_UNKNOWN;
    return mosquitto_callback_register(identifier, MOSQ_EVT_DISCONNECT, leave, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *user_data, struct mosquitto_opt *options, int count)
{
    (void)user_data;
    (void)options;
    (void)count;
    mosquitto_callback_unregister(identifier, MOSQ_EVT_EXT_AUTH_START, begin, NULL);
    mosquitto_callback_unregister(identifier, MOSQ_EVT_EXT_AUTH_CONTINUE, proceed, NULL);
    return mosquitto_callback_unregister(identifier, MOSQ_EVT_DISCONNECT, leave, NULL);
}
