# Mosquitto, the MQTT 3.1.1 and 5 peer, over TCP and WebSocket, with TLS and without. Sourced by `with`.
#
# There are several processes. OpenSSL's errors for one connection remain in the queue of Mosquitto 2.0.11 and make
# the
# next connection fail, above all behind a WebSocket. A refused handshake can thus close another client's connection
# to
# the same process.
# shellcheck shell=bash disable=SC2154

mosquitto_install() {
    command -v mosquitto > /dev/null && command -v mosquitto_passwd > /dev/null && return 0
    apt_install mosquitto
}

# A listener with TLS that shows the certificate NAME: mosquitto_secure PORT NAME [LINE ...]
mosquitto_secure() {
    printf '%s\n' "listener $1 127.0.0.1" 'allow_anonymous true' "certfile $certificates/$2.pem" \
        "keyfile $certificates/$2.key" "${@:3}"
}

# Starts one process with the listeners of standard input: mosquitto_run FOLDER NAME.
mosquitto_run() {
    {
        printf '%s\n' 'per_listener_settings true' 'user root' 'log_dest stderr' 'set_tcp_nodelay true' \
            'max_queued_messages 0' 'max_inflight_messages 1000'
        cat
    } > "$1/$2.conf"
    (
        export_weak_openssl "$1"
        exec mosquitto -c "$1/$2.conf"
    ) > "$1/$2.log" 2>&1 &
    echo $! >> "$1/mosquitto.pid"
}

# Debian's settings, with further ones: mosquitto_run_packaged FOLDER PORT [LINE ...].
mosquitto_run_packaged() {
    printf '%s\n' "listener $2 127.0.0.1" 'allow_anonymous true' 'user root' 'log_dest stderr' \
        "${@:3}" > "$1/packaged-$2.conf"
    mosquitto -c "$1/packaged-$2.conf" > "$1/packaged-$2.log" 2>&1 &
    echo $! >> "$1/mosquitto.pid"
}

mosquitto_run_with_tls() {
    local folder=$1 base=$2 name port websocket='protocol websockets' asks
    # Without the socket domain, Mosquitto would listen on every interface.
    websocket+=$'\nsocket_domain ipv4'
    asks="cafile $certificates/ca.pem"$'\nrequire_certificate true'
    # Each process needs one more listener.
    {
        echo "listener 0 $folder/wss.socket"
        mosquitto_secure $((base + 6)) server "$websocket"
    } | mosquitto_run "$folder" wss
    {
        echo "listener 0 $folder/mutual-wss.socket"
        mosquitto_secure $((base + 7)) server "$websocket" "$asks"
    } | mosquitto_run "$folder" mutual-wss
    # For clients that refuse a good certificate, or speak without TLS.
    {
        echo "listener 0 $folder/refused-wss.socket"
        mosquitto_secure $((base + 16)) server "$websocket"
    } | mosquitto_run "$folder" refused-wss
    {
        mosquitto_secure $((base + 15)) server
        # The certificate's common name is the user.
        mosquitto_secure $((base + 5)) server "$asks" 'use_identity_as_username true'
        port=$((base + 8))
        for name in $bad_certificates; do
            mosquitto_secure $port "$name"
            port=$((port + 1))
        done
    } | mosquitto_run "$folder" refusing
}

mosquitto_start() {
    local folder=$1 base main port ready
    mosquitto_passwd -b -c "$folder/passwd" alice secret
    for base in $(candidate_ports 20); do
        rm -f "$folder/mosquitto.pid"
        {
            cat << CONF
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
# over WebSocket, at any path
listener $((base + 3)) 127.0.0.1
protocol websockets
socket_domain ipv4
allow_anonymous true
CONF
            [ -z "$certificates" ] || mosquitto_secure $((base + 4)) server
        } | mosquitto_run "$folder" mosquitto
        main=$(head -n 1 "$folder/mosquitto.pid")
        # No message is dropped from a full queue.
        mosquitto_run_packaged "$folder" $((base + 17)) 'max_queued_messages 0'
        mosquitto_run_packaged "$folder" $((base + 18))
        # A slow way to the first one.
        "$here/slow.py" $((base + 19)) "$base" 50000 > "$folder/slow.log" 2>&1 &
        echo $! >> "$folder/mosquitto.pid"
        [ -z "$certificates" ] || mosquitto_run_with_tls "$folder" "$base"
        ready=1
        answers_in 10 "$main" mqtt_round_trip "$base" &&
            answers_in 10 "$main" mqtt_round_trip $((base + 17)) &&
            answers_in 10 "$main" mqtt_round_trip $((base + 18)) &&
            answers_in 10 "$main" upgrade_round_trip $((base + 3)) / 101 || ready=0
        if [ -n "$certificates" ]; then
            for port in $((base + 6)) $((base + 7)) $((base + 14)) $((base + 16)); do
                answers_in 10 "$main" accepts "$port" || ready=0
            done
        fi
        if [ $ready = 1 ]; then
            {
                echo "export WAYBILL_MOSQUITTO_PORT=$base"
                echo "export WAYBILL_MOSQUITTO_AUTH_PORT=$((base + 1))"
                echo "export WAYBILL_MOSQUITTO_SMALL_PORT=$((base + 2))"
                echo "export WAYBILL_MOSQUITTO_WS_PORT=$((base + 3))"
                echo "export WAYBILL_MOSQUITTO_PACKAGED_PORT=$((base + 17))"
                echo "export WAYBILL_MOSQUITTO_DEFAULTS_PORT=$((base + 18))"
                echo "export WAYBILL_MOSQUITTO_SLOW_PORT=$((base + 19))"
                if [ -n "$certificates" ]; then
                    echo "export WAYBILL_MOSQUITTO_TLS_PORT=$((base + 4))"
                    echo "export WAYBILL_MOSQUITTO_MUTUAL_PORT=$((base + 5))"
                    echo "export WAYBILL_MOSQUITTO_WSS_PORT=$((base + 6))"
                    echo "export WAYBILL_MOSQUITTO_MUTUAL_WSS_PORT=$((base + 7))"
                    echo "export WAYBILL_MOSQUITTO_REFUSED_TLS_PORT=$((base + 15))"
                    echo "export WAYBILL_MOSQUITTO_REFUSED_WSS_PORT=$((base + 16))"
                    # The first listener with a bad certificate.
                    echo "export WAYBILL_MOSQUITTO_BAD_PORT=$((base + 8))"
                fi
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/mosquitto.pid"
    done
    did_not_start mosquitto "$folder/mosquitto.log"
}
