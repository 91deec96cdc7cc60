# GFS2 on dlm and corosync. A node that is lost is fenced by a reservation on the disk itself.

keys=(a1 b2)

begins() {
    disk_begins
    disk=/dev/$(first_disk "$driver")
    /lib/systemd/systemd-udevd --daemon
    modprobe dlm
    modprobe gfs2
    mkdir -p /etc/corosync /etc/dlm /var/log/corosync /var/lib/corosync
    corosync_is_configured
    fencing_is_configured
    corosync
}

corosync_is_configured() {
    cat >/etc/corosync/corosync.conf <<CONF
totem {
    version: 2
    cluster_name: lunar
    transport: knet
    crypto_cipher: none
    crypto_hash: none
    token: 20000
}
nodelist {
    node {
        name: node1
        nodeid: 1
        ring0_addr: ${nodes[0]}
    }
    node {
        name: node2
        nodeid: 2
        ring0_addr: ${nodes[1]}
    }
}
quorum {
    provider: corosync_votequorum
    two_node: 1
}
logging {
    to_logfile: yes
    logfile: /var/log/corosync/corosync.log
    to_syslog: no
}
CONF
}

fencing_is_configured() {
    cat >/etc/dlm/dlm.conf <<CONF
log_debug=1
enable_startup_fencing=0

device disk /usr/sbin/fence_scsi devices=$disk
connect disk node=1 key=${keys[0]}
connect disk node=2 key=${keys[1]}
unfence disk
CONF
}

# Both nodes are there, and have registered.
joins() {
    within 120 eval "corosync-quorumtool | grep -q 'Quorate: *Yes'"
    corosync-quorumtool || true
    dlm_controld
    within 120 dlm_tool status
    within 120 is_registered "${keys[$((node - 1))]}"
}

is_registered() { sg_persist --in --read-keys "$disk" | grep -q "0x$1"; }

makes() { mkfs.gfs2 -O -p lock_dlm -t lunar:shared -j 2 -J 8 "$disk"; }

# The other one was fenced.
is_alone() {
    dlm_tool status
    dlm_tool ls
    is_registered "${keys[0]}"
    if is_registered "${keys[1]}"; then fail "the dead node is registered"; fi
}

ends() {
    dlm_tool ls
    pkill dlm_controld
    within 90 eval '! pidof dlm_controld'
    sg_persist --out --clear --param-rk=0x${keys[0]} "$disk"
    pkill corosync
    within 90 eval '! pidof corosync'
    fsck.gfs2 -n "$disk"
    disk_ends
    if dmesg | grep -iE 'gfs2.*(fatal|withdr|inconsisten)'; then fail "GFS2 has found damage"; fi
    log_is_clean "dlm: |gfs2: fsid=|(DLM|GFS2) installed${expected:+|$expected}"
}
