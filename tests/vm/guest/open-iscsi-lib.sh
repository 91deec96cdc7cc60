# What the scripts that use open-iscsi have in common.
. /vm/lib.sh

initiator=${initiator:-iqn.2026-11.org.lunar.test:guest}

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
