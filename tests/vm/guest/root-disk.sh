# A machine without a disk, which firmware started from the LUN that is its root: iscsid takes the
# session over, and goes on with it while the server is killed and started again.
. /vm/open-iscsi-lib.sh
ibft=/sys/firmware/ibft

firmware_is_described() {
    iscsiadm -m fw
    [[ $(cat $ibft/initiator/initiator-name) == "$initiator" ]]
    [[ $(cat $ibft/target0/target-name) == "$target" ]]
    [[ $(cat $ibft/target0/ip-addr) == "${portal%:*}" ]]
}

# The kernel has warned of nothing since it began with its initramfs, but of itself: it may get the
# answer to a Login Request before it has let go of the request, and then logs in again.
boot_is_clean() {
    local warned itself='Login/Text in progress'
    warned=$(dmesg --decode | sed '1,/Run .init as init process/d' |
        grep -E '^kern *:(emerg|alert|crit|err|warn) ' | grep -vE "$usual|$itself" || true)
    [[ -z $warned ]] || fail "the kernel's log at boot: $(head -n 1 <<<"$warned")"
    log_begins
}

# There is no disk but that of the LUN.
root_is_remote() {
    [[ $(cd /sys/block && echo [hsv]d*) == sda ]]
    [[ $(disks iscsi_tcp) == sda ]]
    [[ $(findmnt --noheadings --output SOURCE /) == /dev/sda2 ]]
    mount -o remount,rw /
}

# One session, of iscsid, which is not that of the initramfs any more: `session_is_of_daemon PORT`.
session_is_of_daemon() {
    iscsiadm -m session -P 2 >/tmp/session
    grep -q 'iSCSI Session State: LOGGED_IN' /tmp/session &&
        grep -q 'Internal iscsid Session State: NO CHANGE' /tmp/session &&
        [[ $(local_port) != "$1" ]]
}

local_port() { cat /sys/class/iscsi_connection/connection*/local_port; }

# The files of packages, from the disk, as Debian made them.
files_are_whole() {
    local package
    echo 3 >/proc/sys/vm/drop_caches
    for package; do
        (cd / && md5sum --check --quiet --ignore-missing "/var/lib/dpkg/info/$package.md5sums")
    done
}

# What is written and read back goes on meanwhile.
server_is_restarted() {
    local port load
    port=$(local_port)
    fio --name=verified --filename=/var/load --direct=1 --ioengine=libaio --iodepth=4 --bs=16k \
        --rw=randwrite --size=16M --rate=2M --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
        --output-format=terse --terse-version=3 >/tmp/fio &
    load=$!
    sleep 2
    ask restart
    within 60 session_is_of_daemon "$port"
    say "port $port became $(local_port)"
    kill -0 $load || fail "fio ended before the session was back"
    wait $load || { cat /tmp/fio; fail "fio found an error"; }
    cut -d';' -f3,5,6,47 /tmp/fio
}

# What is written last, for the check of the disk afterwards.
leaves() {
    dd if=/dev/urandom of=/var/data bs=1M count=8 status=none
    (cd /mnt && mkdir -p root && sha256sum /var/data | sed 's| /| /mnt/root/|' >/var/left)
    sync
    mount -o remount,ro /
}

boot_is_clean
firmware_is_described
root_is_remote
files_are_whole bash
port=$(local_port)
say iscsid
daemon_runs
within 60 session_is_of_daemon "$port"
cat /tmp/session
unit_is_described /dev/sda
writes_are_read /var/writes
say restart
server_is_restarted
say "uncached reads"
files_are_whole coreutils libc6:amd64
leaves
log_is_clean "conn error"
