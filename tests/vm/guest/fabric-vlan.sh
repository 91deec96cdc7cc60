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
    cp /tmp/theirs-told "/tmp/stock $*"
    /vm/lunar "$@" >/tmp/ours 2>&1 || true
    comparable /tmp/ours >/tmp/ours-told
    diff -u /tmp/theirs-told /tmp/ours-told && return
    differences+=("$*")
}

shows() { grep -qE -- "$1" /tmp/theirs-told || fail "it does not show: $1"; }

# Rows of figures, of which there has to be one: title and columns alone are kept in `FILE-told`.
has_rows() {
    local told=$1
    shift
    timeout -s INT 2 stdbuf -oL "$@" >"$told" 2>&1 || true
    cat "$told"
    grep -qE '^[0-9]' "$told" || fail "no row of $*"
    sed -E 's/[ \t]+$//' "$told" | sed -n '1,/^---/p' >"$told-told"
}

same_columns() {
    echo "--- $*"
    [[ -e "/tmp/stock $*" ]] || has_rows "/tmp/stock $*" "$@"
    has_rows /tmp/ours /vm/lunar "$@"
    diff -u "/tmp/stock $*-told" /tmp/ours-told || differences+=("columns of $*")
}

# What stands before the first colon of each line.
labels() { sed -nE 's/^( *[^:]+):.*/\1/p' "$1"; }

# Ours shows a port of ours as the stock program has shown that of the kernel.
same_labels() {
    echo "--- ours: $*"
    /vm/lunar "$@" | tee /tmp/ours
    diff -u <(labels "/tmp/stock $*") <(labels /tmp/ours) || differences+=("labels of $*")
}

# An initiator of ours at the same interface, with the same target: `ours_is_shown WWPN`.
ours_is_shown() {
    local wwpn load
    wwpn=$(sed -E 's/^0x//; s/..\B/&:/g' <<<"$1")
    /vm/lunar bench "fcoe://$interface/$wwpn/0?mode=fabric" --rw randread --bs 4k \
        --rate-iops 10 --runtime 300s >/tmp/bench 2>&1 &
    load=$!
    took "a port of ours" 20 eval "/vm/lunar fcoeadm -t $interface | grep -q 'State: *Online'"
    same_labels fcoeadm -i $interface
    same_labels fcoeadm -t $interface
    same_labels fcoeadm -f $interface
    same_columns fcoeadm -s $interface 1
    same_columns fcoeadm -b $interface 1
    kill -INT "$load"
    wait "$load" || true
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
target=$(cat "/sys/class/fc_remote_ports/$peer/port_name")
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
ours_is_shown "$target"
ip link del $interface
((${#differences[@]} == 0)) || fail "not the same: ${differences[*]/%/;}"
log_is_clean "Capacity data has changed"
