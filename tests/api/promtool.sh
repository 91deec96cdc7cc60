#!/usr/bin/env bash
# Asks promtool whether Prometheus can read what a daemon at work tells at /metrics, and the alert
# rules, and whether it finds something to say against them.
#
#   tests/api/promtool.sh
#
# The binary is $LUNAR, or that of a release build. promtool comes from PATH, or out of Debian's
# package prometheus, which is unpacked into target/promtool: installed, it starts a server.
set -euo pipefail
cd "$(dirname "$0")/../.."

lunar=${LUNAR:-target/release/lunar}

# Unpacks promtool where there is none. The lists of packages may be missing, or too old.
unpacked() {
    local folder=target/promtool
    [[ -x $folder/usr/bin/promtool ]] && return
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return
    mkdir -p "$folder"
    (cd "$folder" && { apt-get download prometheus ||
        { apt-get update && apt-get download prometheus; }; }) &&
        dpkg -x "$folder"/prometheus_*.deb "$folder" && rm "$folder"/prometheus_*.deb
}

# Without it nothing is asked, and a change still passes.
if ! promtool=$(command -v promtool); then
    promtool=target/promtool/usr/bin/promtool
    if ! unpacked; then
        echo "not run: metrics by promtool: no promtool (Debian's package prometheus has it)"
        echo "test result: ok. 0 passed; 0 failed; 1 not run"
        exit
    fi
fi

folder=$(mktemp -d)
daemon='' host=''
end() {
    # One that has to be stopped ends with another code than 0.
    kill $host $daemon 2>/dev/null || true
    wait || true
    rm -rf "$folder"
}
trap end EXIT

port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
san=iqn.2026-11.org.example:san
cat >"$folder/lunar.toml" <<END
version = 1

[volume.a]
address = "ram:16M"

[volume.idle]
address = "ram:16M"

# It is absent, which is an alarm.
[volume.missing]
address = "file:$folder/missing/disk.img"

[group.all]
initiators = ["*"]

[target."$san"]
portals = ["127.0.0.1:$port"]
luns = { 0 = "a", 1 = "idle", 2 = "missing" }
allow = ["all"]

# Each login here is refused.
[target."$san.closed"]
portals = ["127.0.0.1:$port"]
luns = { 0 = "a" }
END

"$lunar" daemon --config "$folder/lunar.toml" --state-dir "$folder/state" \
    --socket "$folder/socket" 2>"$folder/log" &
daemon=$!
socket() { curl --silent --fail --unix-socket "$folder/socket" "http://lunar$1"; }

# A pattern that comes to be among the metrics within 30 s.
told() {
    for _ in {1..300}; do
        socket /metrics >"$folder/metrics" && grep -q "$1" "$folder/metrics" && return
        sleep 0.1
    done
    echo "never told at /metrics: $1"
    cat "$folder/log" "$folder/metrics"
    return 1
}

told '^lunar_config_generation '
if "$lunar" info "iscsi://127.0.0.1:$port/$san.closed/0" 2>/dev/null; then
    echo "a target that nobody may use let a host in"
    exit 1
fi
# It is at work until the metrics are read: series of a session end with it.
"$lunar" bench "iscsi://127.0.0.1:$port/$san/0" --rw randrw --iodepth 4 --runtime 10m >/dev/null &
host=$!
told '^lunar_volume_operations_total{volume="a",op="read"} [1-9]'
told '^lunar_volume_operations_total{volume="a",op="write"} [1-9]'
told '^lunar_session_commands_total{.*} [1-9]'
told '^lunar_logins_total{.*result="refused"} [1-9]'
told '^lunar_alarm{name="absent",at="volume.missing",'

good=0 bad=0
asked() {
    local what=$1
    shift
    if "$@"; then
        good=$((good + 1))
    else
        echo "promtool: $what"
        bad=$((bad + 1))
    fi
}
metrics() { socket "$1" >"$folder/metrics" && "$promtool" check metrics <"$folder/metrics"; }
for path in /metrics '/metrics?detail=1' '/metrics?volume=a'; do
    asked "$path" metrics "$path"
done
asked docs/grafana/alerts.yml "$promtool" check rules docs/grafana/alerts.yml
kill -0 "$host" "$daemon"
echo "test result: $( ((bad == 0)) && echo ok || echo FAILED). $good passed; $bad failed"
((bad == 0))
