# What the scripts that use open-iscsi have in common.
. /vm/lib.sh

initiator=${initiator:-iqn.2026-11.org.lunar.test:guest}

# The kind of device below iSER is `rdma`, such as siw; without one iSCSI goes over TCP.
if [[ -n ${rdma:-} ]]; then
    driver=iscsi_iser interface=(-I iser)
else
    driver=iscsi_tcp interface=()
fi

network_is_up() {
    ip addr replace "$own/24" dev eth0
    ip link set eth0 up
    [[ -z ${rdma:-} ]] || rdma_is_up
}

# On the network, and with a session at `portal`.
is_logged_in() {
    network_is_up
    daemon_runs
    log_begins
    within 90 iscsiadm -m discovery -t sendtargets -p "$portal" "${interface[@]}"
    iscsiadm -m node -T "$target" -p "$portal" --login
    within 90 has_disks $driver 1
    within 90 test -b "/dev/$(first_disk $driver)"
}

# One that was given up may have come about meanwhile.
login_succeeds() {
    iscsiadm -m node -T "$target" -p "$portal" --login ||
        iscsiadm -m session | grep -F "$target"
}

is_logged_out() {
    iscsiadm -m node -T "$target" -p "$portal" --logout
    iscsiadm -m node -o delete
}

daemon_runs() {
    pidof iscsid >/dev/null && return
    if [[ -n ${rdma:-} ]]; then modprobe ib_iser; else modprobe iscsi_tcp; fi
    modprobe sd_mod
    modprobe sg
    mkdir -p /etc/iscsi /run/lock/iscsi
    echo "InitiatorName=$initiator" >/etc/iscsi/initiatorname.iscsi
    iscsid
    within 20 iscsiadm -m iface
}
