# A fabric on a VLAN, which fipvlan of Open-FCoE finds, and what its programs and ours show of it.
# `fcf` is the MAC address of the switch, `fabric` its Fabric_Name.
. /vm/fabric-lib.sh

interface=eth0.152-fcoe
differences=()

# What is measured differs between two calls, blanks at the end of a line tell nothing, and ours
# names itself in an error. fcping takes the decimal 2112 of sysfs for 0x2112; fcrls tells of its
# call to the kernel.
comparable() {
    sed -E -e 's/ +[0-9]+\.[0-9]+ ms/ N ms/g' -e 's/[ \t]+$//' -e 's/^lunar: //' \
        -e 's/ : 8462 bytes/ : 2108 bytes/' -e '/^DEBUG: ioctl returned/d' -e 's/^DEBUG: //' "$1"
}

# A program of Open-FCoE and ours print the same: `same PROGRAM ARGUMENT…`.
same() {
    echo "--- $*"
    "$@" >/tmp/theirs 2>&1 || true
    comparable /tmp/theirs >/tmp/theirs-told
    cat /tmp/theirs-told
    /vm/lunar "$@" >/tmp/ours 2>&1 || true
    comparable /tmp/ours >/tmp/ours-told
    diff -u /tmp/theirs-told /tmp/ours-told && return
    differences+=("$*")
}

shows() { grep -qE -- "$1" /tmp/theirs-told || fail "it does not show: $1"; }

# Rows of figures: title and columns alone are compared.
same_columns() {
    echo "--- $*"
    timeout -s INT 2 stdbuf -oL "$@" >/tmp/theirs 2>&1 || true
    timeout -s INT 2 /vm/lunar "$@" >/tmp/ours 2>&1 || true
    cat /tmp/theirs /tmp/ours
    local told
    for told in theirs ours; do
        sed -E 's/[ \t]+$//' "/tmp/$told" | sed -n '1,/^---/p' >"/tmp/$told-told"
        grep -qE '^[0-9]' "/tmp/$told" || fail "no row of $*"
    done
    diff -u /tmp/theirs-told /tmp/ours-told || differences+=("$*")
}

ask serve
ethernet_is_up
modprobe -a sd_mod sg 8021q
log_begins
say fipvlan
fipvlan -c -s -f -fcoe eth0 | tee /tmp/told
grep -qE "^eth0 +\| 152 +\| $fcf" /tmp/told
took online 20 host_is_online
took disk 20 has_disks fcoe 1
disk_is_found 60 30
grep -H . /sys/class/fc_host/host*/{port_id,symbolic_name,fabric_name}

port=$(host)
node=$(cat "/sys/class/fc_host/$port/node_name")
own=$(cat "/sys/class/fc_host/$port/port_id")
other=$(cat /sys/class/fc_remote_ports/rport*/port_id | grep -v '^0xff' | head -n 1)
roles=$(grep -l 'FCP Target' /sys/class/fc_remote_ports/rport*/roles | head -n 1)
peer=$(basename "$(dirname "$roles")")
same fcoeadm -i $interface
shows "Symbolic Name: +fcoe v0.1 over $interface"
shows "Fabric Name: +$fabric"
shows 'MaxFrameSize: +2112'
shows "FC-ID .Port ID.: +$own"
shows 'State: +Online'
same fcoeadm -i
same fcoeadm -t $interface
shows 'Roles: +FCP Target'
same fcoeadm -t
same fcoeadm -l $interface
same fcoeadm -f $interface
same fcoeadm -f
same_columns fcoeadm -s $interface 1
same_columns fcoeadm -b $interface 1
same fcping -c 3 -h $interface -F "$other"
shows '3 frames sent, 3 received'
same fcping -c 1 -h $interface -F 0xfffffe
same fcnsq "$port" --gpn "$own"
same fcnsq "$port" --gnn "$own"
same fcnsq "$port" --gspn "$own"
same fcnsq "$port" --gsnn "$node"
same fcnsq "$port" --gpn 0x010fff
same fcrls --port "$peer"
same fcrls --port "$peer" --quiet
same fcrls --fcid "$other"
same fipvlan eth0
say writes
writes_are_read "$disk"
say logout
echo 1 >"/sys/block/$name/device/delete"
/vm/lunar fcoeadm -d $interface
within 20 eval '[[ $(disks fcoe | wc -l) == 0 ]]'
ip link del $interface
((${#differences[@]} == 0)) || fail "not the same: ${differences[*]/%/;}"
log_is_clean "Capacity data has changed"
