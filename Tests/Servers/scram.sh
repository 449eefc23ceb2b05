# Mosquitto with the authentication method SCRAM-SHA-256 of MQTT 5 (scram_plugin.c, compiled at the start). The user is
# `user`, the password `pencil`. Sourced by `with`.
#
#   WAYBILL_SCRAM_PORT            4,096 iterations
#   WAYBILL_SCRAM_COSTLY_PORT     2,000,000 iterations, more than a client accepts by default
# shellcheck shell=bash disable=SC2034,SC2154

scram_install() {
    local missing=()
    command -v cc > /dev/null || missing+=(gcc libc6-dev)
    [ -e /usr/include/mosquitto_plugin.h ] || missing+=(mosquitto-dev)
    [ -e /usr/include/mosquitto.h ] || missing+=(libmosquitto-dev)
    [ -e /usr/include/openssl/evp.h ] || missing+=(libssl-dev)
    command -v mosquitto > /dev/null || missing+=(mosquitto)
    [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
}

scram_start() {
    local folder=$1 base pid plugin=$1/scram_plugin.so
    cc -shared -fPIC -Wall -Wextra -Werror -O1 -o "$plugin" "$here/scram_plugin.c" -lcrypto || return 1
    for base in $(candidate_ports 2); do
        cat > "$folder/costly.conf" << CONF
user root
log_dest stderr
listener $((base + 1)) 127.0.0.1
plugin $plugin
plugin_opt_user user
plugin_opt_password pencil
plugin_opt_iterations 2000000
CONF
        sed "s/^listener .*/listener $base 127.0.0.1/; s/2000000/4096/" "$folder/costly.conf" > "$folder/scram.conf"
        mosquitto -c "$folder/scram.conf" > "$folder/scram.log" 2>&1 &
        pid=$!
        echo $pid > "$folder/scram.pid"
        mosquitto -c "$folder/costly.conf" > "$folder/costly.log" 2>&1 &
        echo $! >> "$folder/scram.pid"
        if answers_in 20 $pid accepts "$base" && answers_in 20 $pid accepts $((base + 1)); then
            {
                echo "export WAYBILL_SCRAM_PORT=$base"
                echo "export WAYBILL_SCRAM_COSTLY_PORT=$((base + 1))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/scram.pid"
    done
    did_not_start scram "$folder/scram.log"
}
