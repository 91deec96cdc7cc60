# Remote RAM disks: what their layouts over targets and portals yield, or RAID-0 or dm-linear over
# four of them, as `story` says. At `portals` one target has all of them; at `portal_apart` each one
# has a target.
. /vm/open-iscsi-lib.sh
export DM_DISABLE_UDEV=1

discovers() { within 30 iscsiadm -m discovery -t sendtargets -p "$1"; }

# A session with a target at a portal: `login TARGET PORTAL`.
login() { iscsiadm -m node -T "$1" -p "$2" --login; }

# The folder of a session in sysfs: `session_at TARGET PORT`.
session_at() {
    local session connection
    for session in /sys/class/iscsi_session/session*; do
        connection=/sys/class/iscsi_connection/connection${session##*session}:0
        [[ $(cat "$session/targetname") == "$1" ]] || continue
        [[ $(cat "$connection/persistent_port") == "$2" ]] && echo "$session"
    done
    true
}

# The disk of a LUN there: `disk_at TARGET PORT LUN`.
disk_at() { echo "/dev/$(ls "$(session_at "$1" "$2")"/device/target*/*:"$3"/block)"; }

# Random reads and writes of 512 bytes, 128 of them outstanding at each disk:
# `is_measured NAME DISK…`.
is_measured() {
    local name=$1 jobs=() disk load figures=()
    shift
    for disk; do jobs+=(--name="${disk##*/}" --filename="$disk"); done
    for load in randwrite:49 randread:8; do
        fio --rw="${load%:*}" --bs=512 --iodepth=128 --ioengine=libaio --direct=1 --invalidate=1 \
            --norandommap --time_based --runtime=2 --group_reporting --output-format=terse \
            --terse-version=3 "${jobs[@]}" >/tmp/figures
        figures+=("$(awk -F';' -v at="${load#*:}" '{ n += $at } END { print n }' /tmp/figures)")
    done
    ask figure "$name: ${figures[0]} writes/s, ${figures[1]} reads/s"
}

layouts() {
    local first=${portals%,*} second=${portals#*,}
    login "$target" "$first"
    within 30 has_disks iscsi_tcp 4
    luns=4 unit_is_described "$(disk_at "$target" "${first#*:}" 0)"
    local both=() other lun
    for lun in 0 1; do both[lun]=$(disk_at "$target" "${first#*:}" "$lun"); done
    is_measured "one target, one LUN" "${both[0]}"
    is_measured "one target, two LUNs" "${both[@]}"
    login "$target" "$second"
    within 30 has_disks iscsi_tcp 8
    other=$(disk_at "$target" "${second#*:}" 1)
    is_measured "two portals, a LUN at each" "${both[0]}" "$other"
    iscsiadm -m node --logoutall=all
    disks_apart
    is_measured "four targets, a LUN in each" "${apart[@]}"
    iscsiadm -m node --logoutall=all
}

# Logs in to the four targets; `apart` has their disks.
disks_apart() {
    local number
    apart=()
    for number in 0 1 2 3; do login "$target:$number" "$portal_apart"; done
    within 30 has_disks iscsi_tcp 4
    for number in 0 1 2 3; do
        apart[number]=$(disk_at "$target:$number" "${portal_apart#*:}" 0)
    done
}

# Makes one of four disks, and again of the same ones, as `again` says: `joins [again]`.
joins() {
    case $story in
    raid-0)
        whole=/dev/md0
        if [[ ${1:-} ]]; then
            mdadm --assemble $whole "${apart[@]}"
        else
            mdadm --create $whole --run --level=0 --raid-devices=4 --chunk=64 "${apart[@]}"
        fi
        mdadm --detail $whole
        ;;
    linear)
        whole=/dev/mapper/linear
        local disk start=0 size
        for disk in "${apart[@]}"; do
            size=$(blockdev --getsz "$disk")
            echo "$start $size linear $disk 0"
            start=$((start + size))
        done >/tmp/linear
        dmsetup create linear </tmp/linear
        dmsetup table linear
        ;;
    esac
}

parts() {
    case $story in
    raid-0) mdadm --stop /dev/md0 ;;
    linear) dmsetup remove linear ;;
    esac
    iscsiadm -m node --logoutall=all
}

local_port() { cat "/sys/class/iscsi_connection/connection$1:0/local_port"; }

has_new_connection() {
    [[ $(cat "/sys/class/iscsi_session/session$1/state") == LOGGED_IN ]] &&
        [[ $(local_port "$1") != "$2" ]]
}

# One of the four sessions loses its connection while fio writes and compares.
session_is_dropped() {
    local session port load
    session=$(session_at "$target:2" "${portal_apart#*:}")
    session=${session##*session}
    fio --name=verified --filename="$whole" --direct=1 --ioengine=libaio --iodepth=16 --bs=16k \
        --rw=randwrite --size=48M --rate=8M --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
        --output-format=terse --terse-version=3 >/tmp/fio &
    load=$!
    sleep 2
    port=$(local_port "$session")
    ss --kill state established "sport = :$port" | grep -q ":$port"
    within 60 has_new_connection "$session" "$port"
    say "back: port $port became $(local_port "$session")"
    kill -0 $load || fail "fio ended before the session was back"
    wait $load || { cat /tmp/fio; fail "fio found an error"; }
    cut -d';' -f3,5,6,47 /tmp/fio
}

# What is written to the whole is there, over the session's loss and when it is made again.
joined() {
    disks_apart
    joins
    local bytes=$(($(blockdev --getsize64 $whole) >> 20))
    ((bytes >= 240)) || fail "$whole has $bytes MiB"
    is_measured "four targets, as $story" $whole
    writes_are_read $whole 4
    whole_flushes_and_discards
    session_is_dropped
    # On each of the four disks, with a checksum that no earlier write has.
    local kept=(fio --name=kept --filename=$whole --direct=1 --bs=256k --rw=write --size=12M
        --numjobs=4 --offset_increment=60M --verify=xxhash --output-format=terse --terse-version=3)
    "${kept[@]}" --do_verify=0 | cut -d';' -f3,5,6,47
    parts
    disks_apart
    joins again
    "${kept[@]}" --verify_only --verify_fatal=1 | cut -d';' -f3,5,6,47 ||
        fail "$whole has lost what was written"
    parts
}

# 4 MiB are on all disks of a stripe.
whole_flushes_and_discards() {
    local part
    dd if=/dev/urandom of=$whole bs=1M seek=62 count=4 oflag=direct status=none
    sync $whole
    blkdiscard --offset $((62 << 20)) --length $((4 << 20)) $whole
    dd if=$whole bs=1M skip=62 count=4 iflag=direct status=none | cmp -n $((4 << 20)) - /dev/zero
}

ip addr replace "$own/24" dev eth0
ip link set eth0 up
daemon_runs
iscsiadm -m node -o delete 2>/dev/null || true
modprobe -a raid0 dm_mod
log_begins
discovers "${portals%,*}"
discovers "$portal_apart"
(($(iscsiadm -m node | grep -c "$target") == 6))
case $story in
layouts) layouts ;;
*) joined ;;
esac
iscsiadm -m session && fail "there is a session after the logout"
log_is_clean "Login/Text in progress|conn error"
