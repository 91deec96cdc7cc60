# open-iscsi at `portal`: discovery, login as `auth` and further words say, use, logout.
. /vm/open-iscsi-lib.sh

node=(iscsiadm -m node -T "$target" -p "$portal")
discovery=(iscsiadm -m discoverydb -t sendtargets -p "$portal")

# Of Linux 6.1 an answer can come before the thread that sent the request has let it go: open-iscsi
# cannot send its next one ("Login/Text in progress"), and over iSER it gives up after 30 s. rxe
# within one guest is fast enough for that.
patience=30
[[ -z ${rdma:-} ]] || patience=90

set_discovery() { "${discovery[@]}" -o update -n "$1" -v "$2"; }
set_() { "${node[@]}" -o update -n "$1" -v "$2"; }

# Those of a record, by `$1` for a setting and a value: of discovery, and of the node.
proofs_are_set() {
    [[ $auth != none ]] || return 0
    "$1" "$2.auth.authmethod" CHAP
    "$1" "$2.auth.username" "$user"
    "$1" "$2.auth.password" "$secret"
    [[ $auth == mutual ]] || return 0
    "$1" "$2.auth.username_in" "$mutual_user"
    "$1" "$2.auth.password_in" "$mutual_secret"
}

login_is_set() {
    set_ node.session.initial_login_retry_max 2
    proofs_are_set set_ node.session
    set_ node.session.auth.chap_algs "$hash"
    set_ 'node.conn[0].iscsi.HeaderDigest' "$digests"
    set_ 'node.conn[0].iscsi.DataDigest' "$digests"
    set_ node.session.iscsi.ImmediateData "$immediate_data"
    set_ node.session.iscsi.InitialR2T "$initial_r2t"
    set_ node.session.iscsi.MaxBurstLength "$max_burst"
    set_ node.session.iscsi.FirstBurstLength "$first_burst"
}

is_discovered() {
    if [[ $hash != MD5 ]]; then
        # A discovery offers no other hash than that. A record of TCP, as one that was discovered
        # over TCP, moves to iSER.
        "${node[@]}" -o new
        [[ -z ${rdma:-} ]] ||
            iscsiadm -m node -T "$target" -o update -n iface.transport_name -v iser
        return
    fi
    say discovery
    "${discovery[@]}" -o new
    proofs_are_set set_discovery discovery.sendtargets
    within $patience "${discovery[@]}" "${interface[@]}" --discover
    iscsiadm -m node | grep "$target"
}

# What the session says that it negotiated.
session_is_as_asked() {
    iscsiadm -m session -P 2 | tee /tmp/session
    local line
    for line in "HeaderDigest: $digests" "DataDigest: $digests" "ImmediateData: $immediate_data" \
        "InitialR2T: $initial_r2t" "MaxBurstLength: $agreed_burst"; do
        grep -qi "$line" /tmp/session
    done
    [[ -z ${rdma:-} ]] || iscsiadm -m session -P 3 | grep 'Iface Transport: iser'
}

# A file system whose files are what they were after they were written back and read anew.
ext4_holds() {
    modprobe ext4
    mkfs.ext4 -q -F "$1"
    mount "$1" /mnt
    dd if=/dev/urandom of=/mnt/random bs=1M count=8 status=none
    cp -r /vm /usr/sbin /mnt
    sync
    sha256sum /mnt/random >/tmp/sum
    umount /mnt
    echo 3 >/proc/sys/vm/drop_caches
    e2fsck -fn "$1"
    mount "$1" /mnt
    sha256sum --check /tmp/sum
    diff -r --no-dereference /usr/sbin /mnt/sbin
    umount /mnt
}

network_is_up
daemon_runs
iscsiadm -m node --logoutall=all 2>/dev/null || true
iscsiadm -m node -o delete 2>/dev/null || true
"${discovery[@]}" -o delete 2>/dev/null || true
log_begins

is_discovered
login_is_set
say login
within $patience login_succeeds
within 30 has_disks $driver 1
disk=/dev/$(first_disk $driver)
within 30 test -b "$disk"
session_is_as_asked
unit_is_described "$disk"
say writes
writes_are_read "$disk" "$mib"
say discard
flushes_and_discards "$disk"
grows "$disk"
[[ -z ${rdma:-} || $variation != plain ]] || ext4_holds "$disk"
say logout
"${node[@]}" --logout
iscsiadm -m session && fail "there is a session after the logout"
# An answer that comes before the thread that sent the request has let it go keeps open-iscsi from
# sending its next one; it logs in again. siw tells of the server's Terminate.
[[ -z ${rdma:-} || -z ${expected:-} ]] ||
    expected+='|iser: iser_(qp_event_callback|err_comp):|siw: got TERMINATE'
log_is_clean "Capacity data has changed|Login/Text in progress${expected:+|$expected}"
