# nginx with nchan, a WebSocket server that echoes to the subscribers of a channel. Sourced by `with`.
#
#   /ws/CHANNEL   what a client sends goes to all of the channel, itself included; permessage-deflate; pings
#   /refused      403 with a body and the header X-Reason     /gone       410 with a body
#   /busy         503 with Retry-After: 1                     /moved      302 to /ws/moved, a relative location
#   /ok           200, which is no upgrade
# shellcheck shell=bash

nginx_module() {
    local module
    for module in /usr/lib/nginx/modules/ngx_nchan_module.so /usr/lib64/nginx/modules/ngx_nchan_module.so; do
        if [ -e "$module" ]; then
            echo "$module"
            return 0
        fi
    done
    return 1
}

nginx_install() {
    command -v nginx > /dev/null && nginx_module > /dev/null && return 0
    apt_install nginx-light libnginx-mod-nchan
}

nginx_start() {
    local folder=$1 base user=
    # As root it would become a user that cannot read this folder.
    [ "$(id -u)" != 0 ] || user='user root;'
    mkdir "$folder/tmp"
    for base in $(candidate_ports 1); do
        cat > "$folder/nginx.conf" << CONF
daemon off; $user worker_processes 1; pid $folder/nginx.master; error_log stderr info;
load_module $(nginx_module);
events { worker_connections 512; }
http {
  access_log off; nchan_shared_memory_size 16M; client_max_body_size 16m; default_type text/plain;
  client_body_temp_path $folder/tmp/b; proxy_temp_path $folder/tmp/p; fastcgi_temp_path $folder/tmp/f;
  uwsgi_temp_path $folder/tmp/u; scgi_temp_path $folder/tmp/s;
  server {
    listen 127.0.0.1:$base;
    location ~ ^/ws/(\w+)\$ {
      nchan_pubsub websocket; nchan_channel_id \$1; nchan_subscriber_first_message newest;
      nchan_websocket_ping_interval 2; nchan_message_buffer_length 1000; nchan_message_timeout 5m;
    }
    location = /refused { add_header X-Reason "not on the list" always; return 403 "You may not enter."; }
    location = /gone { return 410 "There is nothing here any more."; }
    location = /busy { add_header Retry-After 1 always; return 503; }
    location = /moved { absolute_redirect off; return 302 /ws/moved; }
    location = /ok { return 200 "An ordinary page."; }
  }
}
CONF
        nginx -p "$folder" -e stderr -c "$folder/nginx.conf" > "$folder/nginx.log" 2>&1 &
        echo $! > "$folder/nginx.pid"
        if answers_in 10 $! upgrade_round_trip "$base" /ws/ready 101; then
            echo "export WAYBILL_NGINX_PORT=$base" > "$folder/env"
            return 0
        fi
        stop_listed "$folder/nginx.pid"
    done
    did_not_start nginx "$folder/nginx.log"
}
