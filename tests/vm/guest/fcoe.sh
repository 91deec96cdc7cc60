# The kernel's fcoe as an initiator, without a switch (VN2VN).
. /vm/ethernet.sh

port_is_up
ask serve
disk_is_found 60 30
grep -H . /sys/class/fc_host/host*/{port_id,port_type,port_state,maxframe_size}
grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name}
grep -q 'FCP Target' /sys/class/fc_remote_ports/rport*/roles
unit_is_described "$disk"
say writes
writes_are_read "$disk"
say discard
flushes_and_discards "$disk"
grows "$disk"
say logout
disk_is_gone 20
log_is_clean "Capacity data has changed"
