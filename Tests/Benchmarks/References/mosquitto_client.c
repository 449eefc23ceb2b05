// libmosquitto with the same jobs, in its fastest form: one thread with its own loop.
//
//   mosquitto_client publish PORT QOS COUNT SIZE WINDOW
//   mosquitto_client receive PORT QOS COUNT SIZE WINDOW
//   mosquitto_client echo PORT QOS COUNT SIZE
//   mosquitto_client idle PORT COUNT
#include "measure.h"
#include <mosquitto.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int connected, subscribed;
static long done, arrived;

static void on_connect(struct mosquitto *m, void *o, int code) {
    (void)m, (void)o;
    connected += code == 0;
}

static void on_publish(struct mosquitto *m, void *o, int id) {
    (void)m, (void)o, (void)id;
    done++;
}

static void on_message(struct mosquitto *m, void *o, const struct mosquitto_message *message) {
    (void)m;
    arrived += message->payloadlen == *(int *)o;
}

static void on_subscribe(struct mosquitto *m, void *o, int id, int count, const int *granted) {
    (void)m, (void)o, (void)id, (void)count, (void)granted;
    subscribed = 1;
}

static struct mosquitto *client(int port, int *size, long window) {
    char name[32];
    static int number;
    snprintf(name, sizeof name, "reference-%d", number++);
    struct mosquitto *m = mosquitto_new(name, true, size);
    mosquitto_connect_callback_set(m, on_connect);
    mosquitto_publish_callback_set(m, on_publish);
    mosquitto_message_callback_set(m, on_message);
    mosquitto_subscribe_callback_set(m, on_subscribe);
    mosquitto_max_inflight_messages_set(m, window);
    mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
    int before = connected;
    if (mosquitto_connect(m, "127.0.0.1", port, 60)) exit(1);
    while (connected == before) mosquitto_loop(m, 100, 1);
    return m;
}

static void publish(struct mosquitto *m, int qos, long count, int size, const char *payload, long window) {
    begin();
    for (long i = 0; i < count; i++) {
        if (mosquitto_publish(m, NULL, "t", size, payload, qos, false)) exit(1);
        while (qos && i + 1 - done >= window) mosquitto_loop(m, 100, 1);
        while (!qos && mosquitto_want_write(m)) mosquitto_loop_write(m, 1);
    }
    while (qos && done < count) mosquitto_loop(m, 100, 1);
    done = 0;
    mosquitto_publish(m, NULL, "t", 0, NULL, 1, false);
    while (!done) mosquitto_loop(m, 100, 1);
    finish("libmosquitto", count);
}

static void receive(struct mosquitto *m, int qos, long count, int size, long window) {
    char filter[64];
    snprintf(filter, sizeof filter, "pour/%d/%ld/%d/%ld", qos, count, size, window);
    begin();
    mosquitto_subscribe(m, NULL, filter, qos);
    while (arrived < count) mosquitto_loop(m, 100, 1);
    finish("libmosquitto", count);
}

static void echo(struct mosquitto *m, int qos, long count, int size, const char *payload) {
    mosquitto_subscribe(m, NULL, "echo", qos);
    while (!subscribed) mosquitto_loop(m, 100, 1);
    double *times = malloc(count * sizeof *times);
    begin();
    for (long i = 0; i < count; i++) {
        double start = wall_now();
        mosquitto_publish(m, NULL, "echo", size, payload, qos, false);
        while (arrived <= i || (qos && done <= i)) mosquitto_loop(m, 100, 1);
        times[i] = wall_now() - start;
    }
    finish_round_trips("libmosquitto", times, count);
}

static long resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long total, pages = 0;
    if (file && fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    mosquitto_lib_init();
    int port = atoi(argv[2]), size = argc > 5 ? atoi(argv[5]) : 0;
    if (!strcmp(argv[1], "idle")) {
        long count = atol(argv[3]);
        client(port, &size, 20);
        long before = resident();
        for (long i = 0; i < count; i++) client(port, &size, 20);
        printf("{\"job\": \"libmosquitto\", \"count\": %ld, \"bytes_per_connection\": %ld}\n", count, (resident() - before) / count);
        return 0;
    }
    if (argc < 6) return 2;
    int qos = atoi(argv[3]);
    long count = atol(argv[4]), window = argc > 6 ? atol(argv[6]) : 100;
    char *payload = malloc(size + 1);
    memset(payload, 'x', size);
    struct mosquitto *m = client(port, &size, window);
    if (!strcmp(argv[1], "publish")) publish(m, qos, count, size, payload, window);
    else if (!strcmp(argv[1], "receive")) receive(m, qos, count, size, window);
    else echo(m, qos, count, size, payload);
    return 0;
}
