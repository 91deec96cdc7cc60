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
say logout
disk_is_gone 20
log_is_clean "Capacity data has changed"
