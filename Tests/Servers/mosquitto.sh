# Mosquitto, the MQTT 3.1.1 and 5 peer. Sourced by `with`.
#
# Each server's file defines: NAME_install, NAME_start FOLDER (writes FOLDER/env with the variables for the
# tests, and FOLDER/NAME.pid), NAME_stop is the shared one: TERM to that pid.

mosquitto_install() {
    command -v mosquitto > /dev/null && command -v mosquitto_passwd > /dev/null && return 0
    apt_install mosquitto
}

mosquitto_start() {
    local folder=$1 base
    mosquitto_passwd -b -c "$folder/passwd" alice secret
    for base in $(candidate_ports 3); do
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
CONF
        mosquitto -c "$folder/mosquitto.conf" > "$folder/mosquitto.log" 2>&1 &
        echo $! > "$folder/mosquitto.pid"
        if answers_mqtt "$base" "$(cat "$folder/mosquitto.pid")"; then
            {
                echo "export WAYBILL_MOSQUITTO_PORT=$base"
                echo "export WAYBILL_MOSQUITTO_AUTH_PORT=$((base + 1))"
                echo "export WAYBILL_MOSQUITTO_SMALL_PORT=$((base + 2))"
            } >> "$folder/env"
            return 0
        fi
        stop_pid "$(cat "$folder/mosquitto.pid")"
    done
    echo "mosquitto did not start; its last words:" >&2
    tail -n 40 "$folder/mosquitto.log" >&2
    return 1
}
