# What the guests' scripts have in common. What fails ends a script, and the harness shows which
# command it was.
set -eEo pipefail
trap 'fail "line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"' ERR

say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }

fail() {
    trap - ERR
    say "failed: $*"
    echo "reason $*" >&3
    exit 1
}

# Has the harness do something on the host. Where the guest is its own host, `answers` does it.
ask() {
    local answer
    if declare -F answers >/dev/null; then
        answers "$1"
        return
    fi
    echo "ask $*" >&3
    read -r -u 3 answer
    [[ $answer == done ]] || fail "the host could not $*"
}

# Tries a command until it succeeds: `within SECONDS COMMAND…`.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS <= end)) || fail "in vain: $*"
        sleep 0.2
    done
}

# A device of RDMA in software: `rdma`, siw or rxe.
rdma_is_up() {
    modprobe "rdma-link-$rdma"
    rdma link show "${rdma}0/1" 2>/dev/null && return
    rdma link add "${rdma}0" type "$rdma" netdev eth0
    # What programs open.
    modprobe -a ib_uverbs rdma_ucm
    rdma link show
}

# For a target that has a login go on while it still works at the response: its peer's next request
# waits for it then.
has_one_processor() { echo 0 >/sys/devices/system/cpu/cpu1/online; }

# Warnings of the kernel from here on count.
log_begins() { dmesg -C; }

# The clock of an emulated processor is that of a process, which waits for its turn.
usual='Power-on or device reset occurred|hrtimer: interrupt took|clocksource:'
usual+='|RT throttling activated'
# ib_core, of the guest's interface.
usual+='|eth0 speed is unknown'

# No warning in the kernel's log but those that match, and the traces that do: `log_is_clean
# [WARNINGS [TRACES]]`. Of this trace Linux 6.1 warns once if it logs out of iSCSI while the power
# management of a disk is at work.
log_is_clean() {
    local warnings trace='is flushing !WQ_MEM_RECLAIM'
    warnings=$(dmesg --level=emerg,alert,crit,err,warn | without_trace "$trace${2:+|$2}" |
        grep -viE "$usual${1:+|$1}" || true)
    # The line behind "cut here" says what it is about.
    [[ -z $warnings ]] || fail "the kernel's log: $(grep -v -m 1 'cut here' <<<"$warnings")"
}

# Leaves out traces that match, of which two can be one within the other. One that begins with
# "BUG:" ends with its stack.
without_trace() {
    awk -v allowed="$1" '
        !on && /BUG: / { trace = ""; last = "</TASK>"; on++ }
        /\[ cut here \]/ { if (!on) { trace = ""; last = "end trace" } on++ }
        !on { print; next }
        { trace = trace $0 "\n" }
        $0 ~ last { if (!--on) end() }
        function end() { if (trace !~ allowed) printf "%s", trace }
        END { if (on) end() }'
}

# The disks of a SCSI host, such as sda, sorted: `disks DRIVER`, by its proc_name.
disks() {
    local disk host
    for disk in /sys/block/sd*; do
        [[ -e $disk ]] || continue
        host=$(readlink -f "$disk/device" | grep -oE '/host[0-9]+/' | head -n 1)
        [[ $(cat "/sys/class/scsi_host/${host//\//}/proc_name") == "$1" ]] && basename "$disk"
    done
    true
}

first_disk() {
    local all
    mapfile -t all < <(disks "$1")
    echo "${all[0]}"
}

has_disks() { (($(disks "$1" | wc -l) >= $2)); }

# What a unit says of itself.
unit_is_described() {
    sg_inq "$1" | tee /tmp/inquiry
    grep -q 'Vendor identification: LUNAR' /tmp/inquiry
    local page
    for page in sv sn di bl lbpv; do
        sg_vpd --page=$page "$1" | tee /tmp/page
        [[ $(wc -l </tmp/page) -gt 1 ]]
    done
    sg_luns "$1" | tee /tmp/luns
    grep -q "Lun list length = $((8 * ${luns:-1}))" /tmp/luns
    sg_readcap --long "$1"
}

# Random writes of 4, 64 and 256 KiB, each read back and compared: `writes_are_read DEVICE [MIB]`,
# `depth` at once.
writes_are_read() {
    local jobs=() offset=0 size mib=${2:-1}
    for size in 4 64 256; do
        local bytes=$((mib * (size == 4 ? 1 : size == 64 ? 4 : 8)))
        jobs+=(--name="${size}k" --stonewall --bs="${size}k")
        jobs+=(--offset="${offset}M" --size="${bytes}M")
        offset=$((offset + bytes))
    done
    fio --filename="$1" --direct=1 --ioengine=libaio --iodepth="${depth:-8}" --rw=randwrite \
        --verify=crc32c --verify_fatal=1 --output-format=terse --terse-version=3 "${jobs[@]}" |
        cut -d';' -f3,5,6,47
}

# SYNCHRONIZE CACHE, then UNMAP: what was discarded reads as zeros.
flushes_and_discards() {
    sg_sync "$1"
    blkdiscard --offset $((1 << 20)) --length $((1 << 20)) "$1"
    dd if="$1" bs=1M skip=1 count=1 iflag=direct status=none | cmp -n $((1 << 20)) - /dev/zero
}

# The host makes the volume larger; a look at the disk tells the kernel.
grows() {
    local before
    before=$(blockdev --getsize64 "$1")
    ask grow
    within 30 is_larger "$1" "$before"
    say "grown from $before to $(blockdev --getsize64 "$1") bytes"
}

is_larger() {
    echo 1 >"/sys/block/${1#/dev/}/device/rescan"
    (($(blockdev --getsize64 "$1") > $2))
}
