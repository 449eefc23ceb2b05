# A WebSocket server on Python's `websockets`: see websocket_peer.py. Sourced by `with`.
# shellcheck shell=bash disable=SC2154

# A Python with the library: the first on the path, or Debian's.
websockets_python() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'from websockets.legacy.server import serve' 2> /dev/null; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

websockets_install() {
    websockets_python > /dev/null && return 0
    apt_install python3-websockets && websockets_python > /dev/null
}

websockets_start() {
    local folder=$1 base python
    python=$(websockets_python)
    for base in $(candidate_ports 3); do
        "$python" "$here/websocket_peer.py" "$base" > "$folder/websockets.log" 2>&1 &
        echo $! > "$folder/websockets.pid"
        if answers_in 20 $! upgrade_round_trip $((base + 2)) /echo 101; then
            {
                echo "export WAYBILL_WEBSOCKETS_PORT=$base"
                echo "export WAYBILL_WEBSOCKETS_PLAIN_PORT=$((base + 1))"
                echo "export WAYBILL_WEBSOCKETS_SMALL_WINDOW_PORT=$((base + 2))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/websockets.pid"
    done
    did_not_start websockets "$folder/websockets.log"
}
