// libmosquitto at the same job, in the way that is fastest for it: one thread, its own loop.
//
//   mosquitto_client PORT QOS COUNT SIZE WINDOW
#include "measure.h"
#include <mosquitto.h>
#include <stdlib.h>
#include <string.h>

static int connected;
static long done;

static void on_connect(struct mosquitto *m, void *o, int code) {
    (void)m, (void)o;
    connected = code == 0;
}

static void on_publish(struct mosquitto *m, void *o, int id) {
    (void)m, (void)o, (void)id;
    done++;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int qos = atoi(argv[2]);
    long count = atol(argv[3]), size = atol(argv[4]), window = atol(argv[5]);
    char *payload = malloc(size);
    memset(payload, 'x', size);
    mosquitto_lib_init();
    struct mosquitto *m = mosquitto_new("reference", true, NULL);
    mosquitto_connect_callback_set(m, on_connect);
    mosquitto_publish_callback_set(m, on_publish);
    mosquitto_max_inflight_messages_set(m, window);
    mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
    if (mosquitto_connect(m, "127.0.0.1", atoi(argv[1]), 60)) return 1;
    while (!connected) mosquitto_loop(m, 100, 1);
    begin();
    for (long i = 0; i < count; i++) {
        if (mosquitto_publish(m, NULL, "t", size, payload, qos, false)) return 1;
        while (qos && i + 1 - done >= window) mosquitto_loop(m, 100, 1);
        while (!qos && mosquitto_want_write(m)) mosquitto_loop_write(m, 1);
    }
    long last = done + (qos ? count - done : 0);
    while (qos && done < last) mosquitto_loop(m, 100, 1);
    done = 0;
    mosquitto_publish(m, NULL, "t", 0, NULL, 1, false);
    while (!done) mosquitto_loop(m, 100, 1);
    finish("libmosquitto", count);
    return 0;
}
