# Persistent reservations on `disk`, by sg_persist.

key=0xa1
other_key=0xb2

# Exit statuses of sg3-utils: ILLEGAL REQUEST, UNIT ATTENTION, RESERVATION CONFLICT.
illegal=5
attention=6
conflict=24

other() { ask other "$@"; }

# PERSISTENT RESERVE OUT or IN; a unit attention that waits comes first.
persist() {
    local status tries
    for tries in 1 2 3; do
        status=0
        sg_persist --no-inquiry "$@" "$disk" >/tmp/persist 2>&1 || status=$?
        ((status == attention)) || break
        say "before $*: $(head -n 1 /tmp/persist)"
    done
    cat /tmp/persist
    return $status
}

out() { persist --out "$@"; }

conflicts() {
    local status=0
    persist --out "$@" || status=$?
    ((status == conflict)) || fail "no conflict but $status: $*"
}

is_refused() {
    local status=0 why=$1
    shift
    sg_persist --no-inquiry -v --out "$@" "$disk" >/tmp/persist 2>&1 || status=$?
    ((status == illegal)) || fail "not refused but $status: $*"
    grep -q "$why" /tmp/persist
}

# The keys that are registered are these.
has_keys() {
    local keys
    persist --in --read-keys
    keys=$(awk '/^ +0x/ { print $1 }' /tmp/persist | sort | xargs)
    [[ $keys == "$(printf '%s\n' "$@" | sort | xargs)" ]] || fail "keys: $keys, not $*"
}

# A reservation of this type is there, of this key: for types of all registrants it is none.
is_held_as() {
    local names=('' 'Write Exclusive' '' 'Exclusive Access' '' 'Write Exclusive, registrants only'
        'Exclusive Access, registrants only' 'Write Exclusive, all registrants'
        'Exclusive Access, all registrants') holder=${2:-$key}
    (($1 < 7)) || holder=0x0
    persist --in --read-reservation
    grep -q "Key *= *$holder$" /tmp/persist
    grep -q "type: ${names[$1]}$" /tmp/persist
}

is_free() {
    persist --in --read-reservation
    grep -q 'there is NO reservation held' /tmp/persist
}

capabilities_are_told() {
    persist --in --report-capabilities
    local field
    for field in 'CRH): 1' 'SIP_C): 1' 'ATP_C): 1' 'PTPL_C): 1' 'TMV): 1'; do
        grep -qF "$field" /tmp/persist
    done
    (($(grep -cE '(Write Exclusive|Exclusive Access).*: 1' /tmp/persist) == 6))
}

# Each registration with its port, and which of them holds the reservation.
status_is_told() {
    persist --in --read-full-status
    (($(grep -c 'Key=0x' /tmp/persist) == 2))
    (($(grep -c 'Reservation holder' /tmp/persist) == 1))
    grep -q "iSCSI world wide unique port id: $initiator,i,0x" /tmp/persist
}

# The port that has registered a key, as sg_persist takes it for a TransportID.
port_of() {
    persist --in --read-full-status >/dev/null
    awk -v key="Key=$1" '$1 == key { on = 1 }
        on && /iSCSI world wide/ { print $NF; exit }' /tmp/persist
}

# A command counts as one change of registrations.
generation_grows() {
    local before
    before=$(generation)
    "$@"
    (($(generation) == before + 1))
}

generation() {
    persist --in --read-keys >/dev/null
    grep -oE 'generation=0x[0-9a-f]+' /tmp/persist | cut -d= -f2
}

# A write and a read by the block layer are allowed or denied: `access allowed denied`.
access() {
    is_so "$1" dd if=/dev/urandom of="$disk" bs=4k count=1 oflag=direct status=none
    is_so "$2" dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct status=none
}

is_so() {
    local expected=$1 got=allowed
    shift
    if ! "$@" 2>/tmp/error; then
        # What the block layer makes of RESERVATION CONFLICT.
        grep -q 'Invalid exchange' /tmp/error || fail "$(cat /tmp/error)"
        got=denied
    fi
    [[ $got == "$expected" ]] || fail "$got instead of $expected: $*"
}
