# A disk of the kernel's fcoe, for scripts that do not care what brings it. Its port is there before
# the server is, and before anybody else is heard.
. /vm/ethernet.sh

driver=fcoe
# Each guest is a port to the other one, too, and misses it when it is dead.
expected='blocked FC remote port time out'

port_is_up() {
    ethernet_is_up
    modprobe sd_mod
    modprobe sg
    log_begins
    port_begins
}

disk_begins() {
    ip addr replace "$own/24" dev eth0
    within 120 has_disks fcoe 1
    within 90 test -b "/dev/$(first_disk fcoe)"
    within 90 grep -qv '^0$' "/sys/block/$(first_disk fcoe)/size"
}

disk_ends() {
    echo 1 >"/sys/block/$(first_disk fcoe)/device/delete"
    port_ends
    within 90 eval '(($(disks fcoe | wc -l) == 0))'
}
