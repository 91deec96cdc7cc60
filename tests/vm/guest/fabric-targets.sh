# The kernel's fcoe as an initiator, with two targets behind a switch: the kernel's in another
# guest, and ours. Each is written at random, and read back: 13 x `mib` MiB.
. /vm/fabric-lib.sh

ask "serve 0"
port_is_up
took online 20 host_is_online
took "both disks" 20 has_disks fcoe 2
grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name}
vendors=
for name in $(disks fcoe); do
    within 30 test -b "/dev/$name"
    within 30 grep -qv '^0$' "/sys/block/$name/size"
    vendor=$(cat "/sys/block/$name/device/vendor")
    vendors+=" ${vendor// /}"
    say "writes to $vendor"
    writes_are_read "/dev/$name" "$mib"
done
[[ $(printf '%s\n' $vendors | sort | xargs) == "LIO-ORG LUNAR" ]] || fail "disks of$vendors"
say logout
disks_are_gone 20
log_is_clean "Capacity data has changed"
