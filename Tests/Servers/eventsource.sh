# Event stream servers on Python's aiohttp-sse and sse-starlette, and one of Waybill's own that writes exact bytes:
# see
# eventsource_peer.py. Sourced by `with`.
# shellcheck shell=bash disable=SC2154

# The environment that --install makes, kept for the next run.
eventsource_home="$here/../../.build/eventsource-python"

# A Python with the libraries: that of the environment, or the first on the path.
eventsource_python() {
    local python
    for python in "$eventsource_home/bin/python" python3; do
        if "$python" -c 'import aiohttp_sse, sse_starlette, uvicorn' 2> /dev/null; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

eventsource_install() {
    eventsource_python > /dev/null && return 0
    [ "$install" = 1 ] || return 1
    # Debian's module for environments is a package of its own.
    python3 -c 'import ensurepip' 2> /dev/null || apt_install python3 python3-venv || return 1
    mkdir -p "$here/../../.build"
    python3 -m venv --clear "$eventsource_home" > /dev/null || return 1
    "$eventsource_home/bin/python" -m pip install -q --disable-pip-version-check \
        aiohttp-sse sse-starlette uvicorn > /dev/null || return 1
    eventsource_python > /dev/null
}

# Succeeds when a request for PATH is answered by 200: page_round_trip PORT PATH.
page_round_trip() {
    local line
    exec 3<> "/dev/tcp/127.0.0.1/$1" || exit 1
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&3
    IFS= read -r -t 5 line <&3
    [[ "$line" == "HTTP/1.1 200 "* ]]
}

eventsource_start() {
    local folder=$1 base python port answered
    python=$(eventsource_python)
    for base in $(candidate_ports 3); do
        "$python" "$here/eventsource_peer.py" "$base" > "$folder/eventsource.log" 2>&1 &
        echo $! > "$folder/eventsource.pid"
        answered=1
        for port in $((base + 2)) "$base" $((base + 1)); do
            [ $answered = 0 ] || answers_in 20 $! page_round_trip "$port" '/numbered?count=1' || answered=0
        done
        if [ $answered = 1 ]; then
            {
                echo "export WAYBILL_EVENTSOURCE_AIOHTTP_PORT=$base"
                echo "export WAYBILL_EVENTSOURCE_STARLETTE_PORT=$((base + 1))"
                echo "export WAYBILL_EVENTSOURCE_RAW_PORT=$((base + 2))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/eventsource.pid"
    done
    did_not_start eventsource "$folder/eventsource.log"
}
