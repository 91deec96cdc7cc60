# `lunar` as a target of iSER in the guest itself, over rxe: what other scripts ask of the host is
# done here. Words: `target`, `portal`, `initiator`, `auth` and the like.
. /vm/lib.sh

rdma=rxe
served=/var/tmp/served
volume=file:$served
# Who may log in.
access=(--allow "$initiator")
trap 'is_told $?' EXIT

serve() {
    local options=(--iqn "$target" --listen "$portal" --iser=device "${access[@]}")
    if [[ ${auth:-none} != none ]]; then
        secret_file /tmp/secret "$secret"
        options+=(--chap "$user" --secret-file /tmp/secret --chap-min "${hash,,}")
    fi
    if [[ ${auth:-none} == mutual ]]; then
        secret_file /tmp/mutual-secret "$mutual_secret"
        options+=(--mutual-user "$mutual_user" --mutual-secret-file /tmp/mutual-secret)
    fi
    rm -f /tmp/ready
    /vm/lunar serve "$volume" "${options[@]}" --state-dir /tmp/state \
        >/tmp/ready 2>>/tmp/log 3>&- &
    server=$!
    within 60 grep -q iser:// /tmp/ready
}

secret_file() {
    (umask 077 && echo -n "$2" >"$1")
}

disk_is_made() {
    rm -rf "$served" /tmp/state /tmp/log
    truncate -s 128M "$served"
}

answers() {
    case $1 in
    serve) serve ;;
    grow) truncate -s 256M "$served" ;;
    kill) is_killed ;;
    freeze) kill -STOP "$server" ;;
    thaw) kill -CONT "$server" ;;
    *) fail "$1 is not known" ;;
    esac
}

is_killed() {
    kill -KILL "$server"
    wait "$server" || true
}

# It ends well, and has warned of nothing.
server_ends() {
    kill -TERM "$server"
    wait "$server" || fail "the server ended with $?"
    server=
    local warnings
    warnings=$(grep -E 'WARN|ERROR' /tmp/log | grep -vF 'CHAP with MD5 (--chap-min)' || true)
    [[ -z $warnings ]] || fail "the server's log: $(head -n 1 <<<"$warnings")"
}

# The console keeps the log of what failed.
is_told() {
    [[ -z ${server:-} ]] || kill -KILL "$server" || true
    (($1 == 0)) || cat /tmp/log || true
}
