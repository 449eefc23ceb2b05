# ejabberd, a second peer for MQTT 5, over TCP and WebSocket (at /mqtt). Sourced by `with`.
# The user alice@localhost has the password secret; anonymous clients are refused. Its queue limits are the defaults.
# shellcheck shell=bash disable=SC2034
ejabberd_large=1

# The folder with ejabberd's own modules for Erlang.
ejabberd_library() {
    local folder
    for folder in /usr/lib/*/ejabberd-* /usr/lib/*/*/ejabberd-* /usr/lib/ejabberd-*; do
        if [ -d "$folder/ebin" ]; then
            dirname "$folder"
            return 0
        fi
    done
    return 1
}

ejabberd_install() {
    ejabberd_library > /dev/null && command -v erl > /dev/null && return 0
    apt_install ejabberd
}

ejabberd_start() {
    local folder=$1 base
    mkdir "$folder/database" "$folder/log"
    for base in $(candidate_ports 2 | head -n 3); do
        cat > "$folder/ejabberd.yml" << CONF
hosts: [localhost]
auth_method: internal
listen:
  - {port: $base, ip: "127.0.0.1", module: mod_mqtt}
  - {port: $((base + 1)), ip: "127.0.0.1", module: ejabberd_http, request_handlers: {/mqtt: mod_mqtt}}
modules:
  mod_mqtt: {access_publish: {"#": [{allow: all}]}, access_subscribe: {"#": [{allow: all}]}}
CONF
        (
            export HOME=$folder EJABBERD_CONFIG_PATH=$folder/ejabberd.yml EJABBERD_PID_PATH=$folder/server.id \
                EJABBERD_LOG_PATH=$folder/log/ejabberd.log ERL_LIBS
            ERL_LIBS=$(ejabberd_library)
            # Without Erlang's distribution, which would start a daemon that outlives the server.
            exec erl -noinput +S 2:2 +sbwt none -mnesia dir "\"$folder/database\"" -s ejabberd -eval \
                'ejabberd_auth:try_register(<<"alice">>, <<"localhost">>, <<"secret">>).'
        ) > "$folder/ejabberd.log" 2>&1 &
        echo $! > "$folder/ejabberd.pid"
        if answers_in 60 $! mqtt_round_trip "$base" alice@localhost secret; then
            {
                echo "export WAYBILL_EJABBERD_PORT=$base"
                echo "export WAYBILL_EJABBERD_WS_PORT=$((base + 1))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/ejabberd.pid"
        rm -rf "$folder/database"
        mkdir "$folder/database"
    done
    did_not_start ejabberd "$folder/ejabberd.log"
}
