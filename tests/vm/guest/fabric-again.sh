# From nothing to a disk behind a switch, ten times; with `vlan`, on the VLAN that it tells of.
. /vm/fabric-lib.sh

if [[ -n ${vlan:-} ]]; then
    interface=eth0.$vlan-fcoe
    modprobe 8021q

    port_begins() {
        fipvlan -c -s -f -fcoe eth0 | tee /tmp/told
        grep -qE "^eth0 +\| $vlan +\| " /tmp/told
    }
    port_ends() { echo "$interface" >/sys/module/libfcoe/parameters/destroy; }
fi

ask switch
ask "serve 0"
ethernet_is_up
modprobe -a sd_mod sg
log_begins
for time in {1..10}; do
    begun=$(now)
    port_begins
    # From there on 2 s are Linux's own.
    within 8 has_disks fcoe 1
    disk_is_found 20 20
    since "$time: a disk" "$begun"
    dd if="$disk" of=/dev/null bs=64k count=16 iflag=direct status=none
    disk_is_gone 20
    [[ -z ${vlan:-} ]] || ip link del "$interface"
done
log_is_clean "Capacity data has changed"
