# NATS as a cluster of three nodes with JetStream, for MQTT 3.1.1 over TCP. Sourced by `with`, only by name.
# Each stream of MQTT is kept by all three. What is not acknowledged within 2 s is delivered again.
#
# WAYBILL_NATS_CLUSTER_MQTT_PORTS has the three ports. WAYBILL_NATS_CLUSTER_CONTROL is a command: kill NODE, start
# NODE; see `cluster`. WAYBILL_NATS_CLUSTER_TOOL is a command: NODE prints what a node says about its streams.
# shellcheck shell=bash disable=SC2034,SC2154
nats_cluster_named=1

nats_cluster_install() {
    command -v nats-server > /dev/null && return 0
    apt_install nats-server
}

# Writes one node's configuration: nats_cluster_node FOLDER BASE NODE. From BASE + 10 * NODE on, the ports of clients,
# of the cluster, of MQTT and of the state over HTTP.
nats_cluster_node() {
    local folder=$1 base=$2 node=$3 port=$(($2 + 10 * $3))
    mkdir -p "$folder/node.$node"
    cat > "$folder/node.$node/nats.conf" << CONF
server_name: node$node
listen: "127.0.0.1:$port"
http: "127.0.0.1:$((port + 3))"
jetstream { store_dir: "$folder/node.$node/jetstream", max_memory_store: 64MB, max_file_store: 1GB }
cluster {
    name: waybill, listen: "127.0.0.1:$((port + 1))", no_advertise: true
    routes: [ "nats://127.0.0.1:$((base + 11))", "nats://127.0.0.1:$((base + 21))", "nats://127.0.0.1:$((base + 31))" ]
}
authorization { users = [ {user: alice, password: secret}, {user: anonymous, password: anonymous} ] }
no_auth_user: anonymous
mqtt { listen: "127.0.0.1:$((port + 2))", stream_replicas: 3, ack_wait: "2s" }
CONF
    # In its own folder, since a server that ends may write files into the current one. A node that was killed makes its
    # indexes again from its messages: with those it finds, NATS 2.9 may pass over messages that it has acknowledged.
    cat > "$folder/node.$node/start" << SCRIPT
#!/bin/sh
cd "$folder/node.$node" || exit 1
${WAYBILL_NATS_KEEP_INDEXES:+exec nats-server -c nats.conf}
[ ! -d jetstream ] || find jetstream -path '*/msgs/*' '(' -name '*.idx' -o -name '*.fss' ')' -delete
exec nats-server -c nats.conf
SCRIPT
    chmod +x "$folder/node.$node/start"
}

nats_cluster_start() {
    local folder=$1 base node
    for base in $(candidate_ports 40 | head -n 3); do
        for node in 1 2 3; do nats_cluster_node "$folder" "$base" "$node"; done
        # A node is in step when it says that it has all it should have. It cannot know before the streams move: the
        # answer to a CONNECT and to a retained message of QoS 1 comes after the leaders have stored something.
        cat > "$folder/in_step" << SCRIPT
#!/usr/bin/env bash
port=\$(($base + 10 * \$1))
exec 3<> "/dev/tcp/127.0.0.1/\$((port + 2))" || exit 1
printf '\x10\x13\x00\x04MQTT\x04\x02\x00\x3c\x00\x07in-step' >&3
[ "\$(timeout 5 head -c 4 <&3 | od -An -tx1 | tr -d ' \n')" = 20020000 ] || exit 1
printf '\x33\x0c\x00\x07in-step\x00\x01x' >&3
[ "\$(timeout 5 head -c 4 <&3 | od -An -tx1 | tr -d ' \n')" = 40020001 ] || exit 1
exec 3<> "/dev/tcp/127.0.0.1/\$((port + 3))" || exit 1
printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3
timeout 5 grep -q '"status":"ok"' <&3
SCRIPT
        cat > "$folder/tool" << SCRIPT
#!/usr/bin/env bash
exec 2> /dev/null
exec 3<> "/dev/tcp/127.0.0.1/\$(($base + 10 * \$1 + 3))" || exit 1
printf 'GET /jsz?accounts=1&streams=1&consumers=1 HTTP/1.0\r\n\r\n' >&3
timeout 5 sed '1,/^\r*\$/d' <&3
SCRIPT
        printf '#!/bin/sh\nexec "%s/cluster" "%s" "$@"\n' "$here" "$folder" > "$folder/control"
        chmod +x "$folder/in_step" "$folder/tool" "$folder/control"
        "$folder/control" run > "$folder/cluster.log" 2>&1 &
        echo $! > "$folder/nats-cluster.pid"
        # The first CONNECT makes the streams.
        if answers_in 60 $! "$folder/in_step" 1 && answers_in 60 $! "$folder/in_step" 2 &&
            answers_in 60 $! "$folder/in_step" 3 && answers_in 60 $! mqtt_round_trip $((base + 12)); then
            {
                echo "export WAYBILL_NATS_CLUSTER_MQTT_PORTS='$((base + 12)) $((base + 22)) $((base + 32))'"
                echo "export WAYBILL_NATS_CLUSTER_CONTROL=$folder/control"
                echo "export WAYBILL_NATS_CLUSTER_TOOL=$folder/tool"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/nats-cluster.pid"
        rm -rf "$folder"/node.*/jetstream
    done
    did_not_start nats-cluster "$folder/node.1/log"
}
