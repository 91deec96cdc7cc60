# A disk of the kernel's fcoe, for scripts that work on any transport. Its port is there before the
# server is, and before any other port is heard.
. /vm/ethernet.sh

driver=fcoe
# Each guest is a port to the other one, too, and misses it when it is dead.
expected='blocked FC remote port time out'

disk_begins() {
    ip addr replace "$own/24" dev eth0
    disk_is_found 120 90
}

disk_ends() { disk_is_gone 90; }
