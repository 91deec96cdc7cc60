# One of two hosts with a verified load on its own part of a disk, which `transport` brings: does
# what `action` says, with what is `given`.
. "/vm/$transport-disk.sh"

begins() { disk_begins; }

# Writes, reads back and compares, round after round, from `$1` MiB on. No round writes what the one
# before it wrote.
loads() {
    rm -f /tmp/stop /tmp/bad
    (
        for ((round = 1; ; round++)); do
            [[ ! -e /tmp/stop ]] || break
            fio --name=verified --filename="$disk" --direct=1 --ioengine=libaio --iodepth=8 \
                --rw=randwrite --bs=16k --offset="$1M" --size=8M --verify=crc32c \
                --randseed="$round" --verify_fatal=1 >/tmp/fio 2>&1 || { touch /tmp/bad; break; }
            echo "$round" >/tmp/rounds
        done
        touch /tmp/stopped
    ) >/dev/null 3>&- &
    within 180 has_done 2
}

has_done() { (($(cat /tmp/rounds) >= $1)); }

# The other one is dead.
goes_on() {
    local before
    before=$(cat /tmp/rounds)
    within 180 has_done $((before + 4))
    say "$(cat /tmp/rounds) rounds"
    has_no_error
}

has_no_error() {
    if [[ -e /tmp/bad ]]; then fail "fio: $(head -n 1 /tmp/fio)"; fi
}

ends() {
    touch /tmp/stop
    within 180 test -e /tmp/stopped
    has_no_error
    # What the other one has left can be read.
    dd if="$disk" of=/dev/null bs=1M iflag=direct status=none
    writes_are_read "$disk"
    disk_ends
    log_is_clean "$expected"
}

own=$(cut -d, -f"$node" <<<"$nodes")
[[ $action == begins || $action == port_is_up ]] || disk=/dev/$(first_disk "$driver")
"$action" "$given"
