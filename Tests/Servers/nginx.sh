# nginx with nchan: a WebSocket server that echoes to the subscribers of a channel, and event streams.
# Sourced by `with`.
#
#   /ws/CHANNEL   what a client sends goes to all of the channel, itself included; permessage-deflate; pings
#   /refused      403 with a body and the header X-Reason     /gone       410 with a body
#   /busy         503 with Retry-After: 1                     /moved      302 to /ws/moved, a relative location
#   /ok           200 and text/plain, which is neither an upgrade nor an event stream
#
# For event streams:
#
#   /publish/CHANNEL   a POST adds a message, with the type in X-EventSource-Event
#   /events/CHANNEL    from the oldest message on, or from behind Last-Event-ID; pings without data every second
#   /zipped/CHANNEL    the same by gzip, through a proxy         /basic/CHANNEL    the same for ada with lovelace
#   /bearer/CHANNEL    the same for the token "open sesame"      /none             204
#   /STATUS/PATH       301, 302, 303, 307 or 308 to /PATH        /loop             302 to /loop
#   /headers           one event with the Authorization of the request, at both listeners
#   /elsewhere         302 to /headers at the second listener
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
    echo 'ada:{PLAIN}lovelace' > "$folder/users"
    for base in $(candidate_ports 2); do
        cat > "$folder/nginx.conf" << CONF
daemon off; $user worker_processes 1; pid $folder/nginx.master; error_log stderr info;
load_module $(nginx_module);
events { worker_connections 512; }
http {
  access_log off; nchan_shared_memory_size 16M; client_max_body_size 16m; default_type text/plain;
  client_body_temp_path $folder/tmp/b; proxy_temp_path $folder/tmp/p; fastcgi_temp_path $folder/tmp/f;
  uwsgi_temp_path $folder/tmp/u; scgi_temp_path $folder/tmp/s;
  nchan_message_buffer_length 20000; nchan_message_timeout 5m;
  server {
    listen 127.0.0.1:$base; nchan_eventsource_ping_interval 1;
    location ~ ^/ws/(\w+)\$ {
      nchan_pubsub websocket; nchan_channel_id \$1; nchan_subscriber_first_message newest;
      nchan_websocket_ping_interval 2; nchan_message_buffer_length 1000; nchan_message_timeout 5m;
    }
    location = /refused { add_header X-Reason "not on the list" always; return 403 "You may not enter."; }
    location = /gone { return 410 "There is nothing here any more."; }
    location = /busy { add_header Retry-After 1 always; return 503; }
    location = /moved { absolute_redirect off; return 302 /ws/moved; }
    location = /ok { return 200 "An ordinary page."; }

    location ~ ^/publish/(\w+)\$ { nchan_publisher; nchan_channel_id \$1; }
    location ~ ^/events/(\w+)\$ {
      nchan_subscriber eventsource; nchan_channel_id \$1; nchan_subscriber_first_message oldest;
    }
    location /zipped/ {
      proxy_pass http://127.0.0.1:$base/events/; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; gzip on; gzip_types text/event-stream; gzip_min_length 0; gzip_proxied any;
    }
    location ~ ^/basic/(\w+)\$ {
      auth_basic waybill; auth_basic_user_file $folder/users;
      nchan_subscriber eventsource; nchan_channel_id \$1; nchan_subscriber_first_message oldest;
    }
    location ~ ^/bearer/(\w+)\$ {
      add_header WWW-Authenticate 'Bearer realm="waybill"' always;
      if (\$http_authorization != "Bearer open sesame") { return 401 "Say the word."; }
      nchan_subscriber eventsource; nchan_channel_id \$1; nchan_subscriber_first_message oldest;
    }
    location = /none { return 204; }
    absolute_redirect off;
    location ~ ^/301/(.*)\$ { return 301 /\$1; }
    location ~ ^/302/(.*)\$ { return 302 /\$1; }
    location ~ ^/303/(.*)\$ { return 303 /\$1; }
    location ~ ^/307/(.*)\$ { return 307 /\$1; }
    location ~ ^/308/(.*)\$ { return 308 /\$1; }
    location = /loop { return 302 /loop; }
    location = /elsewhere { return 302 http://127.0.0.1:$((base + 1))/headers; }
    location = /headers {
      default_type text/event-stream; return 200 "data: authorization \$http_authorization\n\n";
    }
  }
  server {
    listen 127.0.0.1:$((base + 1));
    location = /headers {
      default_type text/event-stream; return 200 "data: authorization \$http_authorization\n\n";
    }
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
