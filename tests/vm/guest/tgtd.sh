# tgtd as a target of iSER at port 3260, over rxe, as `auth` and further words say. Its LUN 0 is a
# controller, LUN 1 a file.
. /vm/lib.sh

rdma=rxe

admin() { tgtadm --lld iser --op "$@"; }

set_() { admin update --mode target --tid 1 -n "$1" -v "$2"; }

begins() {
    ip addr replace "$own/24" dev eth0
    ip link set eth0 up
    rdma_is_up
    # tgtd refuses, or dies of, a Login Request that it receives before the Send of its response is
    # complete (`iser_login_tx_complete`).
    has_one_processor
    log_begins
    rm -f /var/tmp/disk
    truncate -s 128M /var/tmp/disk
    serves
}

serves() {
    # It listens at every address.
    tgtd -f --iser pool_sz_mb=64 --iscsi portal=127.0.0.1:3261 3>&- &
    within 30 admin new --mode target --tid 1 -T "$target"
    admin new --mode logicalunit --tid 1 --lun 1 -b /var/tmp/disk
    set_ ImmediateData "$immediate_data"
    set_ MaxBurstLength "$max_burst"
    set_ FirstBurstLength "$first_burst"
    if [[ $auth != none ]]; then account "$user" "$secret"; fi
    if [[ $auth == mutual ]]; then account "$mutual_user" "$mutual_secret" --outgoing; fi
    # Over iSER it wants both.
    admin bind --mode target --tid 1 -I ALL
    admin bind --mode target --tid 1 -Q "$initiator"
}

account() {
    admin new --mode account --user "$1" --password "$2"
    admin bind --mode account --tid 1 --user "$1" "${@:3}"
}

# What it has written is in the file, whatever becomes of it.
is_killed() {
    local server
    server=$(pidof tgtd)
    kill -KILL "$server"
    within 20 test ! -e "/proc/$server"
}

ends() {
    kill -KILL "$(pidof tgtd)"
    log_is_clean "$expected"
}

case $action in
begin) begins ;;
kill) is_killed ;;
serve) serves ;;
end) ends ;;
esac
