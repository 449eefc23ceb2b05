# Mosquitto, the MQTT 3.1.1 and 5 peer, over TCP and WebSocket. Sourced by `with`.
# shellcheck shell=bash

mosquitto_install() {
    command -v mosquitto > /dev/null && command -v mosquitto_passwd > /dev/null && return 0
    apt_install mosquitto
}

mosquitto_start() {
    local folder=$1 base
    mosquitto_passwd -b -c "$folder/passwd" alice secret
    for base in $(candidate_ports 4); do
        cat > "$folder/mosquitto.conf" << CONF
per_listener_settings true
user root
log_dest stdout
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 1000
# open to all
listener $base 127.0.0.1
allow_anonymous true
# with a password
listener $((base + 1)) 127.0.0.1
allow_anonymous false
password_file $folder/passwd
# small limits
listener $((base + 2)) 127.0.0.1
allow_anonymous true
max_qos 1
max_topic_alias 5
# over WebSocket, at any path; without the socket domain it would listen on every interface
listener $((base + 3)) 127.0.0.1
protocol websockets
socket_domain ipv4
allow_anonymous true
CONF
        mosquitto -c "$folder/mosquitto.conf" > "$folder/mosquitto.log" 2>&1 &
        echo $! > "$folder/mosquitto.pid"
        if answers_in 10 $! mqtt_round_trip "$base" && answers_in 10 $! upgrade_round_trip $((base + 3)) / 101; then
            {
                echo "export WAYBILL_MOSQUITTO_PORT=$base"
                echo "export WAYBILL_MOSQUITTO_AUTH_PORT=$((base + 1))"
                echo "export WAYBILL_MOSQUITTO_SMALL_PORT=$((base + 2))"
                echo "export WAYBILL_MOSQUITTO_WS_PORT=$((base + 3))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/mosquitto.pid"
    done
    did_not_start mosquitto "$folder/mosquitto.log"
}
