# From nothing to a disk behind a switch, ten times.
. /vm/fabric-lib.sh

ask switch
ask "serve 0"
ethernet_is_up
modprobe -a sd_mod sg
log_begins
for time in {1..10}; do
    begun=$(now)
    port_begins
    within 20 has_disks fcoe 1
    disk_is_found 20 20
    since "$time: a disk" "$begun"
    dd if="$disk" of=/dev/null bs=64k count=16 iflag=direct status=none
    disk_is_gone 20
done
log_is_clean "Capacity data has changed"
