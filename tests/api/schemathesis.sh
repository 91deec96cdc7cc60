#!/usr/bin/env bash
# Asks the whole API of a daemon what its description allows and what it does not, by schemathesis
# (PyPI; installed into target/schemathesis where there is none): no 5xx, and every answer as it is
# described.
#
#   tests/api/schemathesis.sh [CASES]    CASES of each method; without, 100
#
# The binary is $LUNAR, or that of a release build. /v1/events is left out, as it never ends, and so
# is what comes of a wrong token, which has to wait: tests of the crate `control` have both.
set -euo pipefail
cd "$(dirname "$0")/../.."

cases=${1:-100}
lunar=${LUNAR:-target/release/lunar}
version=4.32.5

# Without it nothing is asked, and a change still passes.
if ! schemathesis=$(command -v schemathesis); then
    schemathesis=$PWD/target/schemathesis/bin/schemathesis
    if [[ ! -x $schemathesis ]] && ! { python3 -m venv target/schemathesis &&
        target/schemathesis/bin/pip install --quiet "schemathesis==$version"; }; then
        echo "not run: the API by its description: no schemathesis (python3-venv and PyPI have it)"
        echo "test result: ok. 0 passed; 0 failed; 1 not run"
        exit
    fi
fi

folder=$(mktemp -d)
daemon=
end() {
    if [[ -n $daemon ]]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    fi
    rm -rf "$folder"
}
trap end EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port=$(free_port)
cat >"$folder/lunar.toml" <<END
version = 1

[api]
listen = ["127.0.0.1:$port"]

[volume.a]
address = "ram:1M"

[group.all]
initiators = ["*"]

[target."iqn.2026-11.org.example:san"]
portals = ["127.0.0.1:$(free_port)"]
luns = { 0 = "a" }
allow = ["all"]
END

"$lunar" daemon --config "$folder/lunar.toml" --state-dir "$folder/state" \
    --socket "$folder/socket" 2>"$folder/log" &
daemon=$!
socket() { curl --silent --fail --unix-socket "$folder/socket" "http://lunar$1" "${@:2}"; }
for _ in {1..100}; do
    socket /v1/status >/dev/null && break
    sleep 0.1
done
kill -0 "$daemon" || { cat "$folder/log" && exit 1; }
token=$(socket /v1/tokens --data '{"name": "schemathesis", "role": "admin"}' |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
socket /openapi.json >"$folder/openapi.json"
cmp "$folder/openapi.json" docs/openapi.json

# What the schema allows and a row does not (an address that is none) is refused by 4xx and tells
# nothing of the description, so `positive_data_acceptance` is not asked for.
cd "$folder"
# A change made from another generation is refused (412) before its rows are looked at.
cat >schemathesis.toml <<'END'
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 415, 422, 428, 429]
END
"$schemathesis" run openapi.json --url "http://127.0.0.1:$port" \
    --header "Authorization: Bearer $token" \
    --checks all --exclude-checks ignored_auth,positive_data_acceptance \
    --exclude-path /v1/events --phases examples,coverage,fuzzing \
    --max-examples "$cases" --request-timeout 30 --continue-on-failure --seed 1 \
    --suppress-health-check all --warnings off
# It is still there, and has not panicked.
socket /v1/status >/dev/null
! grep -i panicked "$folder/log"
