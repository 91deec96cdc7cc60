# Fencing of a node that goes on writing, by the agents of clusters, which take keys without 0x.

# `fenced ACTION KEY DEVICE`
by_scsi() { fence_scsi --action "$1" --key "$2" --devices "$3"; }
by_mpath() { fence_mpath --action "$1" --plug "$2" --devices "$3"; }

fencing_by_scsi() { fences by_scsi "$disk"; }

fencing_by_mpath() {
    map_begins a1
    other map_begins b2
    fences by_mpath "$(map)"
    map_ends
    other map_ends
}

# `fences AGENT DEVICE`
fences() {
    local agent=$1 device=$2
    say "both may write"
    "$agent" on a1 "$device"
    other "$agent" on b2 "$device"
    has_keys 0xa1 0xb2
    is_held_as 5 0xa1
    ask other writes "$device"
    ask snapshot
    sleep 1
    ask changed
    say "the other one is fenced"
    "$agent" off b2 "$device"
    # Nothing is on its way any more.
    ask snapshot
    has_keys 0xa1
    other goes_on_in_vain
    ask unchanged
    access allowed allowed
    [[ $("$agent" status b2 "$device") == *OFF* ]]
    say "the other one is back"
    other "$agent" on b2 "$device"
    other access allowed allowed
    out --clear --param-rk=0xa1
}

# Writes, and goes on after errors, of which 52 is EBADE.
writes() {
    fio --name=writer --filename="$1" --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
        --bs=4k --size=32M --time_based --runtime=300 --rate_iops=200 --continue_on_error=write \
        --ignore_error=,52 --status-interval=1 --output-format=terse --terse-version=3 \
        >/tmp/writer 2>&1 3>&- &
    echo $! >/tmp/writer-id
    within 90 grep -q ';writer;' /tmp/writer
}

# Errors come while a node goes on writing that was fenced.
goes_on_in_vain() {
    local writer before
    writer=$(cat /tmp/writer-id)
    before=$(errors)
    within 120 has_errors $((before + 100))
    kill -INT "$writer"
    within 90 eval "! kill -0 $writer"
    has_errors $((before + 100))
}

# fio's count of failed writes so far.
errors() { tail -n 1 /tmp/writer | awk -F';' '{ print $(NF - 1) }'; }

has_errors() { (($(errors) >= $1)); }

map() { echo "/dev/mapper/$(multipath -ll | awk 'NR == 1 { print $1 }')"; }

map_begins() {
    modprobe dm_multipath
    modprobe scsi_dh_alua
    cat >/etc/multipath.conf <<CONF
defaults {
    find_multipaths no
    user_friendly_names no
    no_path_retry fail
    reservation_key 0x$1
}
CONF
    /lib/systemd/systemd-udevd --daemon
    # multipathd asks udev for the disk, which was there before.
    udevadm trigger --subsystem-match=block --settle
    multipathd
    within 120 eval '[[ -b $(map) ]]'
}

# A multipathd that stays makes a map of the next disk, too.
map_ends() {
    pkill -x multipathd
    within 30 eval '! pgrep -x multipathd'
    multipath -F
    udevadm control --exit
}
