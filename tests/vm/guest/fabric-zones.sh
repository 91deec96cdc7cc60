# Zones that come and go, a target that does, and a second port by NPIV in a zone of its own.
. /vm/fabric-lib.sh

ask "zones none"
ask switch
ask "serve 0"
ask "serve 1"
port_is_up
took online 20 host_is_online
sleep 3
[[ $(disks fcoe) == "" ]] || fail "a disk without a zone"
has_targets 0
ask "zones first"
took "a disk by a zone" 3 has_disks fcoe 1
disk_is_found 60 30
writes_are_read "$disk"
ask "zones none"
took "no target without a zone" 2 has_targets 0
ask "zones first"
took "the target by its zone" 3 has_targets 1
ask "leave 0"
took "a target that left" 2 has_targets 0
ask "serve 0"
took "a target that came" 2 has_targets 1
dd if="$disk" of=/dev/null bs=64k count=1 iflag=direct status=none

ask "zones first,other"
port=$(host)
echo "$virtual:2800000000000000" >"/sys/class/fc_host/$port/vport_create"
second=
second_is_there() {
    second=$(grep -lsx "0x$virtual" /sys/class/fc_host/host*/port_name | xargs -r dirname)
    [[ -n $second ]] && grep -qsx Online "$second/port_state"
}
took "a second port by NPIV" 20 second_is_there
grep -H . /sys/class/fc_host/host*/{port_id,port_type,port_name,port_state,fabric_name}
took "its disk" 20 has_disks fcoe 2
for block in $(disks fcoe); do readlink -f "/sys/block/$block"; done
grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name}
for block in $(disks fcoe); do
    [[ /dev/$block == "$disk" ]] && continue
    within 20 test -b "/dev/$block"
    writes_are_read "/dev/$block"
    echo 1 >"/sys/block/$block/device/delete"
done
/vm/lunar fcoeadm -i eth0
echo "$virtual:2800000000000000" >"/sys/class/fc_host/$port/vport_delete"
within 20 eval '! second_is_there'
say logout
disk_is_gone 20
log_is_clean "Capacity data has changed"
