# What the scripts have in common whose port is behind a switch.
. /vm/ethernet.sh

create=create

# The first FC host, `hostN`, which is that of the port itself.
host() { basename "$(printf '%s\n' /sys/class/fc_host/host* | sort -V | head -n 1)"; }

host_is_online() { grep -qsx Online /sys/class/fc_host/host*/port_state; }

# How many targets are online.
targets() {
    local port count=0
    for port in /sys/class/fc_remote_ports/rport*; do
        grep -qsx Online "$port/port_state" && grep -qs 'FCP Target' "$port/roles" || continue
        count=$((count + 1))
    done
    echo "$count"
}

has_targets() { (($(targets) == $1)); }

now() { cut -d' ' -f1 /proc/uptime; }

# Tells how long ago that was: `since WORDS TIME`.
since() { say "$1 after $(awk "BEGIN { print $(now) - $2 }") s"; }

# Tells how long something took: `took WORDS SECONDS COMMAND…`, which is tried until it succeeds.
took() {
    local begun told=$1
    begun=$(now)
    shift
    within "$@"
    since "$told" "$begun"
}

# Takes all disks and the port away, and waits: `disks_are_gone SECONDS`.
disks_are_gone() {
    local disk
    for disk in $(disks fcoe); do
        echo 1 >"/sys/block/$disk/device/delete"
    done
    port_ends
    within "$1" eval '[[ $(disks fcoe | wc -l) == 0 ]]'
}

# `lunar` leaves an interface alone that the kernel's fcoe has, and names the command that frees it,
# which is left in `freeing`: `is_refused ARGUMENT…`.
is_refused() {
    local status=0
    echo "--- lunar $*"
    timeout 60 /vm/lunar "$@" >/tmp/refused 2>&1 || status=$?
    cat /tmp/refused
    ((status == 1)) || fail "lunar $1 ended with $status"
    freeing=$(sed -n 's/.*the kernel has an FCoE port on .*: remove it first with //p' /tmp/refused)
    [[ -n $freeing ]] || fail "lunar $1 names no command"
}
