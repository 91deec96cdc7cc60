# The kernel's fcoe as an initiator, without a switch (VN2VN).
. /vm/ethernet.sh

ethernet_is_up
modprobe sd_mod
modprobe sg
log_begins
say "create_vn2vn"
port_begins
ask serve
within 60 has_disks fcoe 1
name=$(first_disk fcoe)
disk=/dev/$name
within 30 test -b "$disk"
within 30 grep -qv '^0$' "/sys/block/$name/size"
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
echo 1 >"/sys/block/$name/device/delete"
port_ends
within 20 eval '[[ $(disks fcoe | wc -l) == 0 ]]'
log_is_clean "Capacity data has changed"
