# The kernel's fcoe as an initiator, behind a switch.
. /vm/fabric-lib.sh

ask switch
ask serve
port_is_up
took online 20 host_is_online
grep -H . /sys/class/fc_host/host*/{port_id,port_type,port_state,fabric_name,maxframe_size}
grep -H . /sys/bus/fcoe/devices/fcf_*/{fabric_name,switch_name,fc_map,vfid,mac,priority,fka_period,selected,vlan_id}
disk_is_found 60 30
grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name}
grep -q 'FCP Target' /sys/class/fc_remote_ports/rport*/roles
say writes
writes_are_read "$disk"

say "beside a port of ours"
is_refused ls "fcoe://eth0?mode=fabric"
is_refused switch eth0 --open
is_refused serve ram:1M --fcoe eth0,mode=fabric --open
echo 1 >"/sys/block/$name/device/delete"
say "$freeing"
eval "$freeing"
within 20 eval '[[ $(disks fcoe | wc -l) == 0 ]]'
/vm/lunar ls "fcoe://eth0?mode=fabric" | tee /tmp/told
grep -q ' FCP Initiator (ours)  Online' /tmp/told
grep -q ' LUNAR VOLUME ' /tmp/told
log_is_clean "Capacity data has changed"
