# `lunar`'s verbs at a target of iSER in the guest itself: LUN `lun` of `target` at `portal`, which
# says that `vendor` made it. `begin` uses it, `struck` has tgtd killed meanwhile,
# and `grown` looks at it once it has grown.
. /vm/lib.sh

lunar() { /vm/lunar "$@" 3>&-; }

secret_file() {
    (umask 077 && echo -n "$2" >"$1")
}

proofs=() as=
if [[ $auth != none ]]; then
    secret_file /tmp/secret "$secret"
    proofs=(--user "$user" --secret-file /tmp/secret --chap-hash "${hash,,}")
    as="&secret-file=/tmp/secret&chap-hash=${hash,,}"
fi
if [[ $auth == mutual ]]; then
    secret_file /tmp/mutual-secret "$mutual_secret"
    as+="&mutual-secret-file=/tmp/mutual-secret"
fi
unit="iser://${proofs:+$user@}$portal/$target/$lun?via=device&initiator=$initiator$as"

is_listed() {
    lunar ls "iser://$portal" --initiator "$initiator" "${proofs[@]}" | tee /tmp/listed
    grep -q "$target" /tmp/listed
}

# What the session says that it negotiated.
is_as_asked() {
    lunar info "$unit" | tee /tmp/told
    local line
    for line in "vendor $vendor" 'provider RDMA device rxe0' 'RDMAExtensions Yes' \
        "ImmediateData $immediate_data" "InitialR2T $initial_r2t" "MaxBurstLength $agreed_burst"; do
        awk '{ $1 = $1; print }' /tmp/told | grep -qxF "$line" || fail "not so: $line"
    done
}

# What is random is written and read back; an image is copied there and compared, whose holes come
# to be where data was.
is_used() {
    lunar bench "$unit" --rw randrw --bs 4k,64k,256k --iodepth 8 --size 16M --verify --runtime 1s \
        --ramp-time 0
    rm -f /tmp/image
    truncate -s 16M /tmp/image
    local mib
    for mib in 0 2 4 6 8 10 12 14; do
        dd if=/dev/urandom of=/tmp/image bs=1M count=1 seek=$mib conv=notrunc status=none
    done
    lunar copy --state-dir /tmp/state file:/tmp/image "$unit"
    lunar verify file:/tmp/image "$unit"
}

# tgtd is killed twice while what is random is written and read back: no command fails, and no data
# is wrong. It listens before it has its target, and may die of a login that it refuses then
# (docs/peers.md): the load stands still until it has all.
is_struck() {
    local load before
    before=$(written)
    /vm/lunar bench "$unit" --rw randrw --bs 4k,64k,256k --iodepth 8 --size 16M --verify \
        --runtime 30s --ramp-time 0 3>&- &
    load=$!
    for _ in first second; do
        within 60 has_written $((before + (1 << 20)))
        say kill
        action=kill bash -u /vm/tgtd.sh
        # It tries in vain.
        sleep 3
        kill -STOP "$load"
        action=serve bash -u /vm/tgtd.sh
        kill -CONT "$load"
        before=0
    done
    within 60 has_written $((1 << 20))
    say "it goes on"
    wait "$load"
}

# Bytes that the tgtd has written which runs.
written() { awk '$1 == "wchar:" { print $2 }' "/proc/$(pidof tgtd)/io"; }

has_written() { (($(written) > $1)); }

case $action in
begin)
    # tgtd takes its time at its first connection, more than `ls` gives a device.
    is_as_asked
    is_listed
    is_used
    ;;
struck) is_struck ;;
grown)
    lunar info "$unit" | tee /tmp/told
    grep -qF '256.0 MiB' /tmp/told
    ;;
esac
