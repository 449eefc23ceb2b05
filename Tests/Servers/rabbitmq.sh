# RabbitMQ, the peer for STOMP 1.2 over TCP and WebSocket, with TLS and without, and for MQTT 3.1.1 over TCP.
# Sourced by `with`.
# The user guest has the password guest. The virtual host is /, the path of the WebSocket /ws.
#
# With TLS, RabbitMQ chooses the certificate by the first part of the requested name (expired.waybill.test, ...), or
# shows that of `server`. For the name mutual.waybill.test it asks for a client certificate.
# shellcheck shell=bash disable=SC2034,SC2154
rabbitmq_large=1

# The server's own script. The one on the path would change the user and the folder, and hide the log.
rabbitmq_script() {
    local script
    for script in /usr/lib/rabbitmq/bin/rabbitmq-server /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server; do
        if [ -x "$script" ]; then
            echo "$script"
            return 0
        fi
    done
    return 1
}

rabbitmq_install() {
    rabbitmq_script > /dev/null && command -v epmd > /dev/null && return 0
    apt_install rabbitmq-server
}

# The listeners with TLS. Only this configuration format allows certificates by requested name.
rabbitmq_tls() {
    local base=$1 name hosts= own
    own="{cacertfile,\"$certificates/ca.pem\"},{certfile,\"$certificates/server.pem\"},{keyfile,\"$certificates/server.key\"}"
    for name in $bad_certificates; do
        hosts+="{\"$name.waybill.test\",[{certfile,\"$certificates/$name.pem\"},{keyfile,\"$certificates/$name.key\"}]},"
    done
    hosts+="{\"mutual.waybill.test\",[{verify,verify_peer},{fail_if_no_peer_cert,true},$own]}"
    echo "[{rabbit,[{ssl_options,[$own,{sni_hosts,[$hosts]}]}]},"
    echo " {rabbitmq_stomp,[{ssl_listeners,[{\"127.0.0.1\",$((base + 4))}]}]},"
    echo " {rabbitmq_web_stomp,[{ssl_config,[{ip,\"127.0.0.1\"},{port,$((base + 5))},$own,{sni_hosts,[$hosts]}]}]}]."
}

# Starts one node with the configuration in FOLDER: rabbitmq_run FOLDER DISTRIBUTION_PORT EPMD_PORT
rabbitmq_run() {
    local folder=$1 script epmd
    script=$(rabbitmq_script)
    : > "$folder/env.conf"
    # Erlang's port mapper in the foreground. The server would start one that outlives it.
    ERL_EPMD_ADDRESS=127.0.0.1 epmd -port "$3" > "$folder/epmd.log" 2>&1 &
    epmd=$!
    (
        export HOME=$folder RABBITMQ_NODENAME=waybill@localhost RABBITMQ_DIST_PORT=$2 \
            RABBITMQ_CONF_ENV_FILE=$folder/env.conf RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf \
            RABBITMQ_ADVANCED_CONFIG_FILE=$folder/advanced.config \
            RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled_plugins RABBITMQ_MNESIA_BASE=$folder/mnesia \
            RABBITMQ_LOG_BASE=$folder/log RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$folder/server.id \
            RABBITMQ_GENERATED_CONFIG_DIR=$folder/generated \
            ERL_EPMD_PORT=$3 ERL_EPMD_ADDRESS=127.0.0.1 \
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
        exec "$script"
    ) > "$folder/rabbitmq.log" 2>&1 &
    printf '%s\n' $! $epmd > "$folder/rabbitmq.pid"
}

rabbitmq_start() {
    local folder=$1 base server
    echo '[rabbitmq_stomp,rabbitmq_web_stomp,rabbitmq_mqtt].' > "$folder/enabled_plugins"
    # Only three tries, since each takes seconds.
    for base in $(candidate_ports 7 | head -n 3); do
        cat > "$folder/rabbitmq.conf" << CONF
listeners.tcp = none
log.console = true
stomp.listeners.tcp.1 = 127.0.0.1:$base
mqtt.listeners.tcp.1 = 127.0.0.1:$((base + 6))
web_stomp.tcp.ip = 127.0.0.1
web_stomp.tcp.port = $((base + 1))
web_stomp.ws_opts.compress = true
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
CONF
        echo '[].' > "$folder/advanced.config"
        [ -z "$certificates" ] || rabbitmq_tls "$base" > "$folder/advanced.config"
        rabbitmq_run "$folder" "$((base + 2))" "$((base + 3))"
        server=$(head -n 1 "$folder/rabbitmq.pid")
        if answers_in 60 "$server" stomp_round_trip "$base" guest guest &&
            answers_in 60 "$server" upgrade_round_trip $((base + 1)) /ws 101 &&
            answers_in 60 "$server" mqtt_round_trip $((base + 6)) guest guest; then
            {
                echo "export WAYBILL_RABBITMQ_MQTT_PORT=$((base + 6))"
                echo "export WAYBILL_RABBITMQ_STOMP_PORT=$base"
                echo "export WAYBILL_RABBITMQ_WS_PORT=$((base + 1))"
                if [ -n "$certificates" ]; then
                    echo "export WAYBILL_RABBITMQ_STOMPS_PORT=$((base + 4))"
                    echo "export WAYBILL_RABBITMQ_WSS_PORT=$((base + 5))"
                fi
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/rabbitmq.pid"
        rm -rf "$folder/mnesia"
    done
    did_not_start rabbitmq "$folder/rabbitmq.log"
}
