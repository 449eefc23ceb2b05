# RabbitMQ as a cluster of three nodes, for STOMP 1.2 and MQTT 3.1.1 over TCP. Sourced by `with`, only by name.
# The user guest has the password guest, the virtual host is /. The queues of MQTT sessions are quorum queues; with
# WAYBILL_RABBITMQ_CLUSTER_QUEUES=classic each has a home node, and is gone while that is down.
#
# WAYBILL_RABBITMQ_CLUSTER_STOMP_PORTS and ..._MQTT_PORTS have the three ports. WAYBILL_RABBITMQ_CLUSTER_CONTROL is a
# command: kill NODE, start NODE; see `cluster`. WAYBILL_RABBITMQ_CLUSTER_TOOL is RabbitMQ's own: NODE COMMAND ...
# shellcheck shell=bash disable=SC2034,SC2154
rabbitmq_cluster_named=1
# shellcheck source=/dev/null
. "$here/rabbitmq.sh"

rabbitmq_cluster_install() {
    rabbitmq_install
}

# Writes one node's configuration: rabbitmq_cluster_node FOLDER BASE NODE. From BASE + 10 * NODE on, the ports of AMQP,
# STOMP, MQTT and of Erlang. BASE is that of Erlang's port mapper.
rabbitmq_cluster_node() {
    local folder=$1 base=$2 node=$3 port=$(($2 + 10 * $3)) own=$1/node.$3
    mkdir -p "$own"
    : > "$own/env.conf"
    echo '[rabbitmq_stomp,rabbitmq_mqtt].' > "$own/enabled_plugins"
    # A frozen node is missed after net_ticktime. The connections of a killed one are closed at once.
    cat > "$own/rabbitmq.conf" << CONF
listeners.tcp.1 = 127.0.0.1:$port
stomp.listeners.tcp.1 = 127.0.0.1:$((port + 1))
mqtt.listeners.tcp.1 = 127.0.0.1:$((port + 2))
mqtt.durable_queue_type = ${WAYBILL_RABBITMQ_CLUSTER_QUEUES:-quorum}
log.console = true
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.classic_config.nodes.1 = waybill1@localhost
cluster_formation.classic_config.nodes.2 = waybill2@localhost
cluster_formation.classic_config.nodes.3 = waybill3@localhost
cluster_formation.randomized_startup_delay_range.min = 0
cluster_formation.randomized_startup_delay_range.max = 1
net_ticktime = 10
CONF
    cat > "$own/start" << SCRIPT
#!/bin/sh
export HOME=$folder RABBITMQ_NODENAME=waybill$node@localhost RABBITMQ_DIST_PORT=$((port + 3)) \
    RABBITMQ_CONF_ENV_FILE=$own/env.conf RABBITMQ_CONFIG_FILE=$own/rabbitmq.conf \
    RABBITMQ_ENABLED_PLUGINS_FILE=$own/enabled_plugins RABBITMQ_MNESIA_BASE=$own/mnesia \
    RABBITMQ_LOG_BASE=$own/logs RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$own/server.id \
    RABBITMQ_GENERATED_CONFIG_DIR=$own/generated ERL_EPMD_PORT=$base ERL_EPMD_ADDRESS=127.0.0.1 \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
exec $(rabbitmq_script)
SCRIPT
    chmod +x "$own/start"
}

# Writes the commands of the cluster: rabbitmq_cluster_commands FOLDER BASE
rabbitmq_cluster_commands() {
    local folder=$1 base=$2
    mkdir -p "$folder/helper"
    # Erlang's port mapper in the foreground. The nodes would start one that outlives them.
    printf '#!/bin/sh\nERL_EPMD_ADDRESS=127.0.0.1 exec epmd -port %s\n' "$base" > "$folder/helper/start"
    cat > "$folder/tool" << SCRIPT
#!/bin/sh
node=\$1
shift
export HOME=$folder RABBITMQ_NODENAME=waybill\$node@localhost RABBITMQ_CONF_ENV_FILE=$folder/node.\$node/env.conf \
    RABBITMQ_MNESIA_BASE=$folder/node.\$node/mnesia RABBITMQ_LOGS=- ERL_EPMD_PORT=$base ERL_EPMD_ADDRESS=127.0.0.1 \
    RABBITMQ_CTL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false"
exec $(dirname "$(rabbitmq_script)")/rabbitmqctl "\$@"
SCRIPT
    # A node is in step when it serves both protocols, and each quorum queue has all three members.
    cat > "$folder/in_step" << SCRIPT
#!/usr/bin/env bash
$(declare -f mqtt_round_trip stomp_round_trip)
(stomp_round_trip \$(($base + 10 * \$1 + 1)) guest guest) || exit 1
(mqtt_round_trip \$(($base + 10 * \$1 + 2)) guest guest) || exit 1
queues=\$("$folder/tool" "\$1" -q list_queues type online) || exit 1
! grep '^quorum' <<< "\$queues" | grep -vq 'waybill.*waybill.*waybill'
SCRIPT
    printf '#!/bin/sh\nexec "%s/cluster" "%s" "$@"\n' "$here" "$folder" > "$folder/control"
    chmod +x "$folder"/{helper/start,tool,in_step,control}
    # The MQTT plugins of 3.10 have a Raft cluster of their own. It refuses a node that joins at the same moment as another
    # one. The two that remain have no majority when one is killed, which then takes 100 s to start.
    : > "$folder/in_sequence"
}

rabbitmq_cluster_start() {
    local folder=$1 base node
    (umask 077 && head -c 15 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/.erlang.cookie")
    chmod 400 "$folder/.erlang.cookie"
    # Only two tries, since each takes 20 s.
    for base in $(candidate_ports 40 | head -n 2); do
        for node in 1 2 3; do rabbitmq_cluster_node "$folder" "$base" "$node"; done
        rabbitmq_cluster_commands "$folder" "$base"
        "$folder/control" run > "$folder/cluster.log" 2>&1 &
        echo $! > "$folder/rabbitmq-cluster.pid"
        if answers_in 120 $! stomp_round_trip $((base + 11)) guest guest &&
            answers_in 120 $! stomp_round_trip $((base + 21)) guest guest &&
            answers_in 120 $! stomp_round_trip $((base + 31)) guest guest &&
            answers_in 120 $! "$folder/in_step" 1; then
            {
                echo "export WAYBILL_RABBITMQ_CLUSTER_STOMP_PORTS='$((base + 11)) $((base + 21)) $((base + 31))'"
                echo "export WAYBILL_RABBITMQ_CLUSTER_MQTT_PORTS='$((base + 12)) $((base + 22)) $((base + 32))'"
                echo "export WAYBILL_RABBITMQ_CLUSTER_QUEUES=${WAYBILL_RABBITMQ_CLUSTER_QUEUES:-quorum}"
                echo "export WAYBILL_RABBITMQ_CLUSTER_CONTROL=$folder/control"
                echo "export WAYBILL_RABBITMQ_CLUSTER_TOOL=$folder/tool"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/rabbitmq-cluster.pid"
        rm -rf "$folder"/node.*
    done
    did_not_start rabbitmq-cluster "$folder/node.1/log"
}
