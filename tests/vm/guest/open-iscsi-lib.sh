# What the scripts that use open-iscsi have in common.
. /vm/lib.sh

initiator=${initiator:-iqn.2026-11.org.lunar.test:guest}

# On the network, and with a session at `portal`.
is_logged_in() {
    ip addr replace "$own/24" dev eth0
    ip link set eth0 up
    daemon_runs
    log_begins
    within 90 iscsiadm -m discovery -t sendtargets -p "$portal"
    iscsiadm -m node -T "$target" -p "$portal" --login
    within 90 has_disks iscsi_tcp 1
    within 90 test -b "/dev/$(first_disk iscsi_tcp)"
}

is_logged_out() {
    iscsiadm -m node -T "$target" -p "$portal" --logout
    iscsiadm -m node -o delete
}

daemon_runs() {
    pidof iscsid >/dev/null && return
    modprobe iscsi_tcp
    modprobe sd_mod
    modprobe sg
    mkdir -p /etc/iscsi /run/lock/iscsi
    echo "InitiatorName=$initiator" >/etc/iscsi/initiatorname.iscsi
    iscsid
    within 20 iscsiadm -m iface
}
