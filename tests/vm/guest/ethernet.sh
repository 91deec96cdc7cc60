# What the scripts that use the kernel's fcoe have in common.
. /vm/lib.sh

ethernet_is_up() {
    # FC does not survive loss, and Debian's default, fq_codel, drops frames under load.
    tc qdisc replace dev eth0 root pfifo limit 20000
    sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1
    ip link set eth0 mtu "$mtu" up
    modprobe fcoe
}

# `create=create` has it look for a switch.
port_begins() { echo eth0 >"/sys/module/libfcoe/parameters/${create:-create_vn2vn}"; }
port_ends() { echo eth0 >/sys/module/libfcoe/parameters/destroy; }

# As an initiator. Warnings of the kernel count from here on.
port_is_up() {
    ethernet_is_up
    modprobe sd_mod
    modprobe sg
    log_begins
    port_begins
}

# Waits for `disk`, and then for its size: `disk_is_found SECONDS SECONDS`.
disk_is_found() {
    within "$1" has_disks fcoe 1
    name=$(first_disk fcoe)
    disk=/dev/$name
    within "$2" test -b "$disk"
    within "$2" grep -qv '^0$' "/sys/block/$name/size"
}

# Takes the disk and the port away, and waits: `disk_is_gone SECONDS`.
disk_is_gone() {
    echo 1 >"/sys/block/$(first_disk fcoe)/device/delete"
    port_ends
    within "$1" eval '[[ $(disks fcoe | wc -l) == 0 ]]'
}
