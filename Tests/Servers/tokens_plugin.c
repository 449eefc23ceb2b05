/* A plugin for Mosquitto that has tokens_peer.py check the password of a CONNECT, at 127.0.0.1 and the port of
 * `plugin_opt_port`. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

static mosquitto_plugin_id_t *identifier;
static in_port_t port;

/* The status of the answer; 0 for none. */
static int ask(const char *token)
{
    char buffer[1024] = "";
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    int status = 0;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    int length = snprintf(buffer, sizeof buffer,
        "GET /check HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", token);

    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (descriptor < 0) return 0;
    if (length < (int)sizeof buffer && connect(descriptor, (struct sockaddr *)&place, sizeof place) == 0
        && send(descriptor, buffer, (size_t)length, MSG_NOSIGNAL) == length) {
        /* The first piece holds the status. */
        ssize_t count = recv(descriptor, buffer, sizeof buffer - 1, 0);
        buffer[count > 0 ? count : 0] = 0;
        if (sscanf(buffer, "HTTP/1.1 %d", &status) != 1) status = 0;
    }
    close(descriptor);
    return status;
}

static int authenticate(int event, void *data, void *user_data)
{
    struct mosquitto_evt_basic_auth *asked = data;

    (void)event;
    (void)user_data;
    if (asked->password == NULL || strpbrk(asked->password, "\r\n") != NULL) return MOSQ_ERR_AUTH;
    return ask(asked->password) == 204 ? MOSQ_ERR_SUCCESS : MOSQ_ERR_AUTH;
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
    (void)user_data;
    identifier = own;
    for (int index = 0; index < count; index++) {
        if (strcmp(options[index].key, "port") == 0) port = (in_port_t)atoi(options[index].value);
    }
    return mosquitto_callback_register(identifier, MOSQ_EVT_BASIC_AUTH, authenticate, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *user_data, struct mosquitto_opt *options, int count)
{
    (void)user_data;
    (void)options;
    (void)count;
    return mosquitto_callback_unregister(identifier, MOSQ_EVT_BASIC_AUTH, authenticate, NULL);
}
