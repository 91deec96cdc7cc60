# What `lunar doctor` finds in a guest behind a switch is mended by the command that it prints, and
# then it finds nothing.
. /vm/fabric-lib.sh

doctor() { /vm/lunar doctor fcoe://eth0; }

finds_nothing() {
    doctor >/tmp/told 2>&1 || { cat /tmp/told && fail "doctor finds something"; }
    grep -q 'all is well' /tmp/told
}

# It tells of this, and of nothing else that this machine can mend: `finds WORDS`.
finds() {
    local status=0
    doctor >/tmp/told 2>&1 || status=$?
    cat /tmp/told
    ((status == 1)) || fail "doctor ended with $status"
    grep -qE -- "$1" /tmp/told || fail "doctor does not find: $1"
    (($(commands | wc -l) <= 1)) || fail "doctor finds more than: $1"
}

# What it has printed to run on this machine.
commands() { sed -n '/^    on /d; s/^    //p' /tmp/told; }

# Runs that.
mends() {
    local command
    command=$(commands)
    say "$command"
    eval "$command"
}

settings_are_mended() {
    ask switch
    ethernet_is_up
    finds_nothing
    tc qdisc replace dev eth0 root fq_codel
    finds fq_codel
    mends
    finds_nothing
    ethtool -G eth0 rx 64
    finds 'receive ring holds 64 of 1024'
    mends
    finds_nothing
    ip link set eth0 mtu 1500
    finds 'MTU of 1500'
    mends
    finds_nothing
    # On the way, where this machine can do nothing.
    ask narrow
    finds 'full frames from the FCF .* do not come in'
    grep -q 'on each bridge, .*: ip link set PORT mtu 2500' /tmp/told
    ask widen
    finds_nothing
}

# The addresses that Linux gives the two ends.
is_point_to_point() { grep -qsx '0x01010[12]' /sys/class/fc_host/host*/port_id; }

host_is_in_fabric() { host_is_online && [[ -n $(cat /sys/bus/fcoe/devices/fcf_*/selected) ]]; }

# Two kernels that hear each other before a switch.
logs_in_alone() {
    ethernet_is_up
    log_begins
    port_begins
}

# The one that has heard the other takes itself for one of two, and does not look for a switch any
# more, which is there now.
is_mended() {
    took "point-to-point" 60 is_point_to_point
    grep -H . /sys/class/fc_host/host*/{port_type,port_state,port_id}
    ask switch
    sleep 10
    grep -H . /sys/class/fc_host/host*/{port_type,port_state,port_id}
    finds 'has gone point-to-point and ignores every FCF'
    mends
    ask "mend the other"
    finds_nothing
    port_begins
    took online 20 host_is_in_fabric
    port_ends
}

# What doctor says of the other one.
other_is_mended() {
    ip link set eth0 down && ip link set eth0 up
    took online 20 host_is_in_fabric
    port_ends
}

$action
