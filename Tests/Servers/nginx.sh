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
#
# With TLS the same, at three listeners: one that shows the certificate whose name begins the name asked for
# (expired.waybill.test, ...; else that of `server`), one that wants a client's certificate, one of TLS 1.2 only.
#
#   /secured           302 from the plain to the first of them, /headers; /exposed back, which is refused
# shellcheck shell=bash disable=SC2154

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

# Prints a server with TLS: nginx_secure PORT CERTIFICATE NAME LINE ...
nginx_secure() {
    local port=$1 certificate=$certificates/$2 name=$3
    shift 3
    printf 'server { listen 127.0.0.1:%s ssl; server_name %s; ssl_certificate %s.pem; ssl_certificate_key %s.key;' \
        "$port" "$name" "$certificate" "$certificate"
    printf ' %s' "include $folder/places.conf;" "$@" '}'
    printf '\n'
}

nginx_servers_with_tls() {
    local base=$1 name
    [ -n "$certificates" ] || return 0
    nginx_secure $((base + 2)) server localhost
    for name in $bad_certificates; do nginx_secure $((base + 2)) "$name" "$name.waybill.test"; done
    nginx_secure $((base + 3)) server localhost "ssl_client_certificate $certificates/ca.pem;" 'ssl_verify_client on;'
    nginx_secure $((base + 4)) server localhost 'ssl_protocols TLSv1.2;'
}

nginx_start() {
    local folder=$1 base user=
    # As root, nginx would change to a user that cannot read this folder.
    [ "$(id -u)" != 0 ] || user='user root;'
    mkdir "$folder/tmp"
    echo 'ada:{PLAIN}lovelace' > "$folder/users"
    for base in $(candidate_ports 5); do
        cat > "$folder/places.conf" << CONF
nchan_eventsource_ping_interval 1;
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
location = /secured { return 302 https://localhost:$((base + 2))/headers; }
location = /exposed { return 302 http://localhost:$base/headers; }
location = /headers {
  default_type text/event-stream; return 200 "data: authorization \$http_authorization\n\n";
}
CONF
        cat > "$folder/nginx.conf" << CONF
daemon off; $user worker_processes 1; pid $folder/nginx.master; error_log stderr info;
load_module $(nginx_module);
events { worker_connections 512; }
http {
  access_log off; nchan_shared_memory_size 64M; client_max_body_size 16m; default_type text/plain;
  client_body_temp_path $folder/tmp/b; proxy_temp_path $folder/tmp/p; fastcgi_temp_path $folder/tmp/f;
  uwsgi_temp_path $folder/tmp/u; scgi_temp_path $folder/tmp/s;
  nchan_message_buffer_length 20000; nchan_message_timeout 5m; ssl_protocols TLSv1.2 TLSv1.3;
  server {
    listen 127.0.0.1:$base; include $folder/places.conf;
  }
  server {
    listen 127.0.0.1:$((base + 1));
    location = /headers {
      default_type text/event-stream; return 200 "data: authorization \$http_authorization\n\n";
    }
  }
$(nginx_servers_with_tls "$base")
}
CONF
        (
            export_weak_openssl "$folder"
            exec nginx -p "$folder" -e stderr -c "$folder/nginx.conf"
        ) > "$folder/nginx.log" 2>&1 &
        echo $! > "$folder/nginx.pid"
        if answers_in 10 $! upgrade_round_trip "$base" /ws/ready 101; then
            {
                echo "export WAYBILL_NGINX_PORT=$base"
                if [ -n "$certificates" ]; then
                    echo "export WAYBILL_NGINX_TLS_PORT=$((base + 2))"
                    echo "export WAYBILL_NGINX_MUTUAL_PORT=$((base + 3))"
                    echo "export WAYBILL_NGINX_TLS_1_2_PORT=$((base + 4))"
                fi
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/nginx.pid"
    done
    did_not_start nginx "$folder/nginx.log"
}
