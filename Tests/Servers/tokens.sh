# Servers that check tokens that expire, and the issuer of the tokens (tokens_peer.py at WAYBILL_TOKENS_PORT, which
# lists
# its requests). Sourced by `with`.
#
#   WAYBILL_TOKENS_MQTT_PORT             Mosquitto; the token is the password (tokens_plugin.c, compiled at the start)
#   WAYBILL_TOKENS_RABBITMQ_MQTT_PORT    RabbitMQ with rabbitmq_auth_backend_http, MQTT 3.1.1; the password
#   WAYBILL_TOKENS_STOMP_PORT            the same, STOMP; the passcode
#   WAYBILL_TOKENS_NGINX_PORT            nginx with auth_request; `Authorization: Bearer TOKEN` on every request:
#                                        /publish/CHANNEL and /events/CHANNEL as in nginx.sh, the upgrades of
#                                        /mqtt to another listener of Mosquitto and of /stomp to RabbitMQ, where
#                                        every client may log in as guest with the password guest
#   WAYBILL_TOKENS_PROPERTY_PORT         Mosquitto behind a gate that wants the user property `token` of CONNECT
#   WAYBILL_TOKENS_HEADER_PORT           RabbitMQ behind a gate that wants the header `Authorization` of CONNECT
# shellcheck shell=bash disable=SC2034,SC2154
tokens_large=1

# The functions that find and start each server. `with` reads only the files that are named.
# shellcheck source=/dev/null
. "$here/nginx.sh"
# shellcheck source=/dev/null
. "$here/rabbitmq.sh"

tokens_install() {
    local missing=() compiler=
    command -v cc > /dev/null || missing+=(gcc libc6-dev)
    [ -e /usr/include/mosquitto_plugin.h ] || missing+=(mosquitto-dev)
    [ -e /usr/include/mosquitto.h ] || missing+=(libmosquitto-dev)
    command -v mosquitto > /dev/null || missing+=(mosquitto)
    command -v python3 > /dev/null || missing+=(python3)
    [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}" || return 1
    nginx_install && rabbitmq_install
}

tokens_run_mosquitto() {
    local folder=$1 base=$2
    cc -shared -fPIC -Wall -Wextra -Werror -O1 -o "$folder/tokens_plugin.so" "$here/tokens_plugin.c" || return 1
    cat > "$folder/mosquitto.conf" << CONF
per_listener_settings true
user root
log_dest stderr
listener $((base + 1)) 127.0.0.1
plugin $folder/tokens_plugin.so
plugin_opt_port $base
# behind listeners that have checked a token
listener $((base + 2)) 127.0.0.1
allow_anonymous true
listener $((base + 3)) 127.0.0.1
protocol websockets
socket_domain ipv4
allow_anonymous true
CONF
    mosquitto -c "$folder/mosquitto.conf" > "$folder/mosquitto.log" 2>&1 &
    echo $! >> "$folder/tokens.pid"
}

tokens_run_rabbitmq() {
    local folder=$1 base=$2
    echo '[rabbitmq_stomp,rabbitmq_web_stomp,rabbitmq_mqtt,rabbitmq_auth_backend_http].' > "$folder/enabled_plugins"
    echo '[].' > "$folder/advanced.config"
    cat > "$folder/rabbitmq.conf" << CONF
listeners.tcp = none
log.console = true
stomp.listeners.tcp.1 = 127.0.0.1:$((base + 4))
web_stomp.tcp.ip = 127.0.0.1
web_stomp.tcp.port = $((base + 5))
mqtt.listeners.tcp.1 = 127.0.0.1:$((base + 6))
auth_backends.1 = internal
auth_backends.2 = rabbit_auth_backend_http
auth_http.http_method = post
auth_http.user_path = http://127.0.0.1:$base/user
auth_http.vhost_path = http://127.0.0.1:$base/vhost
auth_http.resource_path = http://127.0.0.1:$base/resource
auth_http.topic_path = http://127.0.0.1:$base/topic
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
CONF
    rabbitmq_run "$folder" "$((base + 7))" "$((base + 8))"
}

tokens_run_nginx() {
    local folder=$1 base=$2 user=
    [ "$(id -u)" != 0 ] || user='user root;'
    mkdir -p "$folder/tmp"
    cat > "$folder/nginx.conf" << CONF
daemon off; $user worker_processes 1; pid $folder/nginx.master; error_log stderr info;
load_module $(nginx_module);
events { worker_connections 512; }
http {
  access_log off; nchan_shared_memory_size 64M; client_max_body_size 16m; default_type text/plain;
  client_body_temp_path $folder/tmp/b; proxy_temp_path $folder/tmp/p; fastcgi_temp_path $folder/tmp/f;
  uwsgi_temp_path $folder/tmp/u; scgi_temp_path $folder/tmp/s;
  nchan_message_buffer_length 20000; nchan_message_timeout 5m;
  server {
    listen 127.0.0.1:$((base + 9));
    location = /check {
      internal; proxy_pass http://127.0.0.1:$base/check; proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }
    auth_request /check;
    location ~ ^/publish/(\w+)\$ { nchan_publisher; nchan_channel_id \$1; }
    location ~ ^/events/(\w+)\$ {
      nchan_subscriber eventsource; nchan_channel_id \$1; nchan_subscriber_first_message oldest;
      nchan_eventsource_ping_interval 1;
    }
    proxy_http_version 1.1; proxy_set_header Upgrade \$http_upgrade; proxy_set_header Connection "upgrade";
    proxy_read_timeout 1h;
    location = /mqtt { proxy_pass http://127.0.0.1:$((base + 3))/; }
    location = /stomp { proxy_pass http://127.0.0.1:$((base + 5))/ws; }
  }
}
CONF
    nginx -p "$folder" -e stderr -c "$folder/nginx.conf" > "$folder/nginx.log" 2>&1 &
    echo $! >> "$folder/tokens.pid"
}

tokens_start() {
    local folder=$1 base peer server
    # Only three tries, since each takes seconds.
    for base in $(candidate_ports 12 | head -n 3); do
        rm -f "$folder/tokens.pid"
        tokens_run_rabbitmq "$folder" "$base"
        server=$(head -n 1 "$folder/rabbitmq.pid")
        python3 "$here/tokens_peer.py" "$base" $((base + 10)) $((base + 2)) $((base + 4)) \
            > "$folder/tokens.log" 2>&1 &
        peer=$!
        echo $peer >> "$folder/tokens.pid"
        tokens_run_mosquitto "$folder" "$base" || return 1
        tokens_run_nginx "$folder" "$base"
        if answers_in 20 $peer accepts "$base" && answers_in 20 $peer accepts $((base + 11)) &&
            answers_in 20 $peer mqtt_round_trip $((base + 2)) &&
            answers_in 20 $peer accepts $((base + 1)) &&
            answers_in 20 $peer upgrade_round_trip $((base + 9)) /mqtt 401 &&
            answers_in 120 "$server" stomp_round_trip $((base + 4)) guest guest &&
            answers_in 120 "$server" upgrade_round_trip $((base + 5)) /ws 101 &&
            answers_in 120 "$server" mqtt_round_trip $((base + 6)) guest guest; then
            {
                echo "export WAYBILL_TOKENS_PORT=$base"
                echo "export WAYBILL_TOKENS_MQTT_PORT=$((base + 1))"
                echo "export WAYBILL_TOKENS_RABBITMQ_MQTT_PORT=$((base + 6))"
                echo "export WAYBILL_TOKENS_STOMP_PORT=$((base + 4))"
                echo "export WAYBILL_TOKENS_NGINX_PORT=$((base + 9))"
                echo "export WAYBILL_TOKENS_PROPERTY_PORT=$((base + 10))"
                echo "export WAYBILL_TOKENS_HEADER_PORT=$((base + 11))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/rabbitmq.pid"
        stop_listed "$folder/tokens.pid"
        rm -rf "$folder/mnesia"
    done
    tail -n 20 "$folder/tokens.log" "$folder/mosquitto.log" "$folder/nginx.log" >&2
    did_not_start tokens "$folder/rabbitmq.log"
}
