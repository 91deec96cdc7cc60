# What the kernel's fcoe needs of its Ethernet.
. /vm/lib.sh

ethernet_is_up() {
    # FC does not survive loss, and Debian's default, fq_codel, drops frames under load.
    tc qdisc replace dev eth0 root pfifo limit 20000
    sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1
    ip link set eth0 mtu "$mtu" up
    modprobe fcoe
}

port_begins() { echo eth0 >/sys/module/libfcoe/parameters/create_vn2vn; }
port_ends() { echo eth0 >/sys/module/libfcoe/parameters/destroy; }
