# NATS with JetStream, a third peer for MQTT 3.1.1, over TCP and WebSocket (at /mqtt). Sourced by `with`.
# Anonymous clients are allowed, and the user alice with the password secret. NATS accepts neither QoS 2 nor topics
# with
# a dot or a blank.
# shellcheck shell=bash

nats_install() {
    command -v nats-server > /dev/null && return 0
    apt_install nats-server
}

nats_start() {
    local folder=$1 base
    for base in $(candidate_ports 3); do
        cat > "$folder/nats.conf" << CONF
server_name: waybill
host: 127.0.0.1
port: $base
jetstream { store_dir: "$folder/jetstream", max_memory_store: 64MB, max_file_store: 256MB }
authorization { users = [ {user: alice, password: secret}, {user: anonymous, password: anonymous} ] }
no_auth_user: anonymous
mqtt { host: 127.0.0.1, port: $((base + 1)) }
websocket { host: 127.0.0.1, port: $((base + 2)), no_tls: true }
CONF
        nats-server -c "$folder/nats.conf" > "$folder/nats.log" 2>&1 &
        echo $! > "$folder/nats.pid"
        if answers_in 20 $! mqtt_round_trip $((base + 1)); then
            {
                echo "export WAYBILL_NATS_MQTT_PORT=$((base + 1))"
                echo "export WAYBILL_NATS_WS_PORT=$((base + 2))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/nats.pid"
    done
    did_not_start nats "$folder/nats.log"
}
