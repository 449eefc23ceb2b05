# Mosquitto, the MQTT 3.1.1 and 5 peer, over TCP and WebSocket, with TLS and without. Sourced by `with`.
# shellcheck shell=bash disable=SC2154

mosquitto_install() {
    command -v mosquitto > /dev/null && command -v mosquitto_passwd > /dev/null && return 0
    apt_install mosquitto
}

# A listener with TLS that shows a certificate: mosquitto_secure PORT NAME.
mosquitto_secure() {
    printf 'listener %s 127.0.0.1\nallow_anonymous true\ncertfile %s.pem\nkeyfile %s.key\n' \
        "$1" "$certificates/$2" "$certificates/$2"
}

mosquitto_listeners_with_tls() {
    local base=$1 name port
    [ -n "$certificates" ] || return 0
    mosquitto_secure $((base + 4)) server
    mosquitto_secure $((base + 5)) server
    # The certificate's common name is the user.
    printf '%s\n' "cafile $certificates/ca.pem" 'require_certificate true' 'use_identity_as_username true'
    mosquitto_secure $((base + 6)) server
    printf '%s\n' 'protocol websockets' 'socket_domain ipv4'
    mosquitto_secure $((base + 7)) server
    printf '%s\n' 'protocol websockets' 'socket_domain ipv4' "cafile $certificates/ca.pem" 'require_certificate true'
    port=$((base + 8))
    for name in $bad_certificates; do
        mosquitto_secure $port "$name"
        port=$((port + 1))
    done
}

mosquitto_start() {
    local folder=$1 base name port
    mosquitto_passwd -b -c "$folder/passwd" alice secret
    for base in $(candidate_ports 15); do
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
$(mosquitto_listeners_with_tls "$base")
CONF
        (
            export_weak_openssl "$folder"
            exec mosquitto -c "$folder/mosquitto.conf"
        ) > "$folder/mosquitto.log" 2>&1 &
        echo $! > "$folder/mosquitto.pid"
        if answers_in 10 $! mqtt_round_trip "$base" && answers_in 10 $! upgrade_round_trip $((base + 3)) / 101; then
            {
                echo "export WAYBILL_MOSQUITTO_PORT=$base"
                echo "export WAYBILL_MOSQUITTO_AUTH_PORT=$((base + 1))"
                echo "export WAYBILL_MOSQUITTO_SMALL_PORT=$((base + 2))"
                echo "export WAYBILL_MOSQUITTO_WS_PORT=$((base + 3))"
                if [ -n "$certificates" ]; then
                    echo "export WAYBILL_MOSQUITTO_TLS_PORT=$((base + 4))"
                    echo "export WAYBILL_MOSQUITTO_MUTUAL_PORT=$((base + 5))"
                    echo "export WAYBILL_MOSQUITTO_WSS_PORT=$((base + 6))"
                    echo "export WAYBILL_MOSQUITTO_MUTUAL_WSS_PORT=$((base + 7))"
                    # The first of those with a bad certificate.
                    echo "export WAYBILL_MOSQUITTO_BAD_PORT=$((base + 8))"
                fi
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/mosquitto.pid"
    done
    did_not_start mosquitto "$folder/mosquitto.log"
}
