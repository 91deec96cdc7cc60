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

# A program of Open-FCoE and ours succeed and print the same, with this among it:
# `same WORDS PROGRAM ARGUMENT…`. Two equal errors would be nothing that is shown.
same() {
    local words=$1
    shift
    echo "--- $*"
    "$@" >/tmp/theirs 2>&1 || fails_with_output "$* of Open-FCoE ended with $?"
    compares "$@" || fail "$* of ours ended with $?"
    shows "$words"
    cp /tmp/theirs-told "/tmp/stock $*"
}

# Both fail in the same words: `same_error WORDS PROGRAM ARGUMENT…`.
same_error() {
    local words=$1
    shift
    echo "--- $*"
    ! "$@" >/tmp/theirs 2>&1 || fails_with_output "$* of Open-FCoE did not fail"
    ! compares "$@" || fail "$* of ours did not fail"
    shows "$words"
    cp /tmp/theirs-told "/tmp/stock $*"
}

fails_with_output() {
    cat /tmp/theirs
    fail "$1"
}

# Runs ours, and notes whether it prints the same: with its exit code.
compares() {
    local status=0
    comparable /tmp/theirs >/tmp/theirs-told
    cat /tmp/theirs-told
    /vm/lunar "$@" >/tmp/ours 2>&1 || status=$?
    comparable /tmp/ours >/tmp/ours-told
    diff -u /tmp/theirs-told /tmp/ours-told || differences+=("$*")
    return "$status"
}

shows() { grep -qE -- "$1" /tmp/theirs-told || fail "it does not show: $1"; }

# Rows of figures below this title, of which there has to be one: `has_rows FILE TITLE PROGRAM…`.
# Titles and columns alone are kept in `FILE-told`.
has_rows() {
    local told=$1 title=$2
    shift 2
    timeout -s INT 2 stdbuf -oL "$@" >"$told" 2>&1 || true
    cat "$told"
    grep -qE '^[0-9]' "$told" || fail "no row of $*"
    sed -E 's/[ \t]+$//' "$told" | sed -n '1,/^---/p' >"$told-told"
    grep -qwF -- "$title" "$told-told" || fail "no title $title of $*"
}

# `same_columns TITLE PROGRAM ARGUMENT…`.
same_columns() {
    local title=$1
    shift
    echo "--- $*"
    [[ -e "/tmp/stock $*" ]] || has_rows "/tmp/stock $*" "$title" "$@"
    has_rows /tmp/ours "$title" /vm/lunar "$@"
    diff -u "/tmp/stock $*-told" /tmp/ours-told || differences+=("columns of $*")
}

# What stands before the first colon of each line.
labels() { sed -nE 's/^( *[^:]+):.*/\1/p' "$1"; }

# Ours shows a port of ours as the stock program has shown that of the kernel.
same_labels() {
    echo "--- ours: $*"
    /vm/lunar "$@" | tee /tmp/ours
    [[ -s "/tmp/stock $*" ]] || fail "$* of Open-FCoE has shown nothing"
    diff -u <(labels "/tmp/stock $*") <(labels /tmp/ours) || differences+=("labels of $*")
}

# What answers have in common: addresses, names of hosts and remote ports, and what is measured
# differ between the two ports.
by_any_port() {
    comparable "$1" | sed -E -e 's/0x[0-9A-Fa-f]+/ID/g' -e 's/fc_(host|lunar-)[0-9-]+/fc_HOST/' \
        -e 's/rport-(lunar-)?[0-9:-]+/RPORT/' -e 's/(= )[0-9]+$/\1N/' -e 's/: .* over /: NAME over /' \
        -e 's/^((Port|Node) Name): [0-9a-f]{16}$/\1: WWN/'
}

# Ours answers by a port of ours as the stock program has by that of the kernel: `same_answers STOCK
# ARGUMENT…`, where STOCK are the words that the latter was called with.
same_answers() {
    local stock=$1
    shift
    echo "--- ours: $*"
    /vm/lunar "$@" >/tmp/ours 2>&1 || true
    cat /tmp/ours
    diff -u <(by_any_port "/tmp/stock $stock") <(by_any_port /tmp/ours) || differences+=("answers of $*")
}

# ECHO, queries and link errors by the port at the interface, of the target at `other`.
ours_asks() {
    local device id rport
    device=$(/vm/lunar fcoeadm -i $interface | sed -nE 's/^ *OS Device Name: *(lunar-.*)/\1/p')
    id=$(/vm/lunar fcoeadm -i $interface | sed -nE 's/^ *FC-ID \(Port ID\): *(.*)/\1/p')
    rport=$(/vm/lunar fcoeadm -t $interface | sed -nE 's/^ *OS Device Name: *(rport-.*)/\1/p')
    same_answers "fcping -c 3 -h $interface -F $other" fcping -c 3 -h $interface -F "$other"
    same_answers "fcping -c 1 -h $interface -F 0xfffffe" fcping -c 1 -h "$device" -F 0xfffffe
    same_answers "fcnsq $port --gpn $own" fcnsq "$device" --gpn "$id"
    same_answers "fcnsq $port --gnn $own" fcnsq "$device" --gnn "$id"
    same_answers "fcnsq $port --gspn $own" fcnsq "$device" --gspn "$id"
    same_answers "fcnsq $port --gpn 0x010fff" fcnsq "$device" --gpn 0x010fff
    same_answers "fcrls --port $peer" fcrls --port "$rport"
    same_answers "fcrls --fcid $other" fcrls --fcid "$other"
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
    same_columns TxFrames fcoeadm -s $interface 1
    same_columns VLinkFail fcoeadm -b $interface 1
    ours_asks
    kill -INT "$load"
    wait "$load" || true
}

# The interface filters VLANs as a card does: a switch of ours there is refused until it knows the
# VLAN, by the commands that the refusal names.
vlan_is_let_through() {
    local status=0 switch
    timeout 60 /vm/lunar switch eth0 --open --vlan 152 >/tmp/refused 2>&1 || status=$?
    cat /tmp/refused
    ((status == 1)) || fail "a switch on a VLAN that is filtered ended with $status"
    freeing=$(sed -n 's/.*which has no interface: //; s/, ip / \&\& ip /p' /tmp/refused)
    say "$freeing"
    eval "$freeing"
    /vm/lunar switch eth0 --open --vlan 152 >/tmp/switch &
    switch=$!
    within 20 grep -q 'VLAN 152' /tmp/switch
    kill "$switch"
    wait "$switch"
    ip link del $interface
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
own_wwpn=$(cat "/sys/class/fc_host/$port/port_name")

# The fields of seed 003.
same 'State: +Online' fcoeadm -i $interface
shows "Symbolic Name: +fcoe v0.1 over $interface"
shows "Node Name: +$node"
shows "Port Name: +$own_wwpn"
shows "Fabric Name: +$fabric"
shows 'MaxFrameSize: +2112'
shows "FC-ID .Port ID.: +$own"
same "FC-ID .Port ID.: +$own" fcoeadm -i
same 'Roles: +FCP Target' fcoeadm -t $interface
shows "Interface: +$interface"
shows "Port Name: +$target"
shows 'Target ID: +0'
shows 'MaxFrameSize: +2112'
shows "OS Device Name: +$peer"
shows "FC-ID .Port ID.: +$other"
shows 'State: +Online'
shows "^ +0 +$name +[0-9.]+ [KMG]iB +512 +LUNAR "
same "Port Name: +$target" fcoeadm -t
same 'LUN #0 Information' fcoeadm -l $interface
shows "OS Device Name: +(/dev/)?$name"
shows "Ethernet Port FCID: +$own"
shows "Target FCID: +$other"
shows 'Status: +Attached'
same 'FCF #[0-9]+ Information' fcoeadm -f $interface
shows "Fabric Name: +$fabric"
shows "MAC Address: +${fcf^^}"
shows 'Selected: +Yes'
same "Fabric Name: +$fabric" fcoeadm -f
same_columns TxFrames fcoeadm -s $interface 1
same_columns VLinkFail fcoeadm -b $interface 1
same '3 frames sent, 3 received 0 errors, 0.000% loss' fcping -c 3 -h $interface -F "$other"
same '1 frames sent, 1 received' fcping -c 1 -h $interface -F 0xfffffe
same "Port Name: ${own_wwpn#0x}" fcnsq "$port" --gpn "$own"
same "Node Name: ${node#0x}" fcnsq "$port" --gnn "$own"
same "Symbolic Port Name: fcoe v0.1 over $interface" fcnsq "$port" --gspn "$own"
same "Symbolic Node Name: fcoe v0.1 over $interface" fcnsq "$port" --gsnn "$node"
same_error 'Port Identifier not registered' fcnsq "$port" --gpn 0x010fff
same 'Virtual Link Failure Count += [0-9]+' fcrls --port "$peer"
same 'Link Failure Count += [0-9]+' fcrls --port "$peer" --quiet
same "found rport $other as $peer" fcrls --fcid "$other"
same "eth0 +\| 152 +\| $fcf" fipvlan eth0
say writes
writes_are_read "$disk"
say logout
echo 1 >"/sys/block/$name/device/delete"
/vm/lunar fcoeadm -d $interface
within 20 eval '[[ $(disks fcoe | wc -l) == 0 ]]'
say "as esxcli shows it"
/vm/lunar ls "fcoe://$interface?mode=fabric" --json | tee /tmp/told
grep -q '"Underlying PNIC":"eth0"' /tmp/told
grep -q '"VLAN ID":152' /tmp/told
ours_is_shown "$target"
ip link del $interface
vlan_is_let_through
((${#differences[@]} == 0)) || fail "not the same: ${differences[*]/%/;}"
log_is_clean "Capacity data has changed"
