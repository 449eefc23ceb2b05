# tinyproxy: an HTTP proxy that makes tunnels to any port for the user ada with the password lovelace. Sourced by
# `with`.
# shellcheck shell=bash

tinyproxy_install() {
    command -v tinyproxy > /dev/null && return 0
    apt_install tinyproxy
}

# Succeeds when the proxy refuses a request without credentials.
proxy_round_trip() {
    local line
    exec 3<> "/dev/tcp/127.0.0.1/$1" || exit 1
    printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' "$1" "$1" >&3
    IFS= read -r -t 5 line <&3
    [[ "$line" == "HTTP/1."[01]" 407 "* ]]
}

tinyproxy_start() {
    local folder=$1 base
    for base in $(candidate_ports 1); do
        cat > "$folder/tinyproxy.conf" << CONF
Port $base
Listen 127.0.0.1
Allow 127.0.0.1
BasicAuth ada lovelace
Timeout 60
MaxClients 200
LogLevel Connect
CONF
        tinyproxy -d -c "$folder/tinyproxy.conf" > "$folder/tinyproxy.log" 2>&1 &
        echo $! > "$folder/tinyproxy.pid"
        if answers_in 10 $! proxy_round_trip "$base"; then
            echo "export WAYBILL_TINYPROXY_PORT=$base" > "$folder/env"
            return 0
        fi
        stop_listed "$folder/tinyproxy.pid"
    done
    did_not_start tinyproxy "$folder/tinyproxy.log"
}
