# dm-multipath over two portals, which one discovery at `portal` finds. The second one is cut for
# 9 s twice while fio writes, reads back and compares.
. /vm/open-iscsi-lib.sh

paths_are() {
    multipath -ll >/tmp/paths
    (($(grep -cE "$1" /tmp/paths) == $2))
}

ip addr replace "$own/24" dev eth0
ip addr replace "$own_other/24" dev eth1
ip link set eth0 up
ip link set eth1 up
daemon_runs
modprobe dm_multipath
modprobe scsi_dh_alua
cat >/etc/multipath.conf <<'CONF'
defaults {
    find_multipaths no
    user_friendly_names no
    polling_interval 1
    max_polling_interval 2
    path_grouping_policy group_by_prio
    no_path_retry 60
}
CONF
/lib/systemd/systemd-udevd --daemon
log_begins
say discovery
within 30 iscsiadm -m discovery -t sendtargets -p "$portal"
(($(iscsiadm -m node | grep -c "$target") == 2))
# A path fails within 4 s of a cut.
for setting in 'node.conn[0].timeo.noop_out_interval=1' 'node.conn[0].timeo.noop_out_timeout=2' \
    node.session.timeo.replacement_timeout=1; do
    iscsiadm -m node -o update -n "${setting%=*}" -v "${setting#*=}"
done
iscsiadm -m node --loginall=all
within 30 has_disks iscsi_tcp 2
multipathd
within 60 paths_are ' active ready running' 2
cat /tmp/paths
grep -q alua /tmp/paths
map=/dev/mapper/$(head -n 1 /tmp/paths | cut -d' ' -f1)
within 20 test -b "$map"
for disk in $(disks iscsi_tcp); do
    sg_rtpg --decode "/dev/$disk" | tee /tmp/groups
    grep -q 'active/optimized' /tmp/groups
done

# Until the file `stop` is there. No pass writes what the one before it wrote.
load() {
    local pass=0
    until [[ -e /tmp/stop ]]; do
        pass=$((pass + 1))
        fio --randseed="$pass" --name=verified --filename="$map" --direct=1 \
            --ioengine=libaio --iodepth=4 \
            --rw=randwrite --bs=16k --size=24M --rate=6M --verify=crc32c --verify_backlog=64 \
            --verify_fatal=1 --output-format=terse --terse-version=3 >/tmp/fio 2>&1
    done
}

say fio
rm -f /tmp/stop
load &
load=$!
for _ in 1 2; do
    sleep 3
    say cut
    ask cut
    cut=$SECONDS
    within 60 paths_are ' failed ' 1
    say "a path has failed"
    while ((SECONDS < cut + 9)); do sleep 0.2; done
    ask join
    within 60 paths_are ' active ready running' 2
    say "both paths are back"
done
touch /tmp/stop
wait "$load" || { cat /tmp/fio; fail "fio found an error"; }
cut -d';' -f3,5,6,47 /tmp/fio
writes_are_read "$map"
sg_sync "/dev/$disk"
say logout
# What watches block devices may have it open for a moment.
within 20 multipath -F
iscsiadm -m node --logoutall=all
# What becomes of a path that is cut.
cut='ping timeout|conn error|recovery timed out|(Failing|Reinstating) path'
lost='rejecting I/O|I/O error, dev sd|DID_TRANSPORT_DISRUPTED|CDB: Test Unit Ready'
log_is_clean "$cut|$lost"
