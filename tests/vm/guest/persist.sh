# Persistent reservations of one of two initiators at `portal`: does what `action` says, with what
# is `given`. The first guest runs whole stories, and has the host make the other one act.
. /vm/open-iscsi-lib.sh
. /vm/persist-lib.sh
. /vm/persist-fencing.sh

begins() { is_logged_in; }

ends() {
    is_logged_out
    # What the kernel says of a conflict, of a preemption, and of a server that was killed.
    local refused='reservation conflict|critical nexus error|callbacks suppressed'
    refused+='|Buffer I/O error on dev sd[a-z]+, logical block 0'
    log_is_clean "$refused|Parameters changed|conn error|CONFIG_IMA_DISABLE_HTABLE"
}

# Each type, at a nexus that is registered and at one that is not: what it keeps out, which nexus
# holds it, and that it is released.
types() {
    local type write read registered_write registered_read
    while read -r type write read registered_write registered_read; do
        say "type $type"
        out --register --param-sark=$key
        out --reserve --param-rk=$key --prout-type="$type"
        is_held_as "$type"
        access allowed allowed
        other access "$write" "$read"
        other out --register --param-sark=$other_key
        other access "$registered_write" "$registered_read"
        if ((type < 7)); then
            other conflicts --reserve --param-rk=$other_key --prout-type="$type"
        else
            # The other one holds it, too.
            other out --reserve --param-rk=$other_key --prout-type="$type"
        fi
        out --release --param-rk=$key --prout-type="$type"
        is_free
        other access allowed allowed
        other out --register --param-rk=$other_key --param-sark=0
        out --register --param-rk=$key --param-sark=0
        has_keys
    done <<'TYPES'
1 denied allowed denied allowed
3 denied denied denied denied
5 denied allowed allowed allowed
6 denied denied allowed allowed
7 denied allowed allowed allowed
8 denied denied allowed allowed
TYPES
}

# Each action but REGISTER AND MOVE, done well and done wrongly.
actions() {
    say "REGISTER"
    conflicts --register --param-rk=$key --param-sark=$key
    out --register --param-sark=$key
    conflicts --register --param-rk=$other_key --param-sark=0x55
    conflicts --register --param-sark=0x55
    out --register --param-rk=$key --param-sark=0x55
    has_keys 0x55
    say "REGISTER AND IGNORE"
    out --register-ignore --param-sark=$key
    other out --register-ignore --param-sark=$other_key
    has_keys $key $other_key
    say "RESERVE and RELEASE"
    conflicts --reserve --param-rk=0x55 --prout-type=1
    out --reserve --param-rk=$key --prout-type=1
    conflicts --reserve --param-rk=$key --prout-type=3
    is_refused 'Invalid release of persistent reservation' \
        --release --param-rk=$key --prout-type=3
    # A registrant that does not hold it changes nothing.
    other out --release --param-rk=$other_key --prout-type=1
    is_held_as 1
    capabilities_are_told
    status_is_told
    preempts preempt
    preempts preempt-abort
    say "CLEAR"
    generation_grows out --clear --param-rk=$key
    has_keys
    is_free
    other access allowed allowed
}

# Takes the reservation from the other one, and the registration, which it notices.
preempts() {
    say "$1"
    out --register-ignore --param-sark=$key
    other out --register-ignore --param-sark=$other_key
    out --release --param-rk=$key --prout-type=1
    other out --reserve --param-rk=$other_key --prout-type=3
    access denied denied
    conflicts "--$1" --param-rk=$key --param-sark=0x55 --prout-type=1
    generation_grows out "--$1" --param-rk=$key --param-sark=$other_key --prout-type=1
    has_keys $key
    is_held_as 1
    access allowed allowed
    other access denied allowed
    other conflicts --release --param-rk=$other_key --prout-type=3
    # One that only is registered loses that alone.
    other out --register --param-sark=$other_key
    out "--$1" --param-rk=$key --param-sark=$other_key --prout-type=5
    has_keys $key
    is_held_as 1
}

# What names another nexus by its TransportID: REGISTER AND MOVE, and REGISTER for others.
transports() {
    local other_port move
    other out --register --param-sark=$other_key
    other_port=$(port_of $other_key)
    say "SPEC_I_PT and ALL_TG_PT at $other_port"
    other out --register --param-rk=$other_key --param-sark=0
    has_keys
    out --register --param-sark=$key --transport-id="$other_port" --param-alltgpt
    has_keys $key $key
    other out --register --param-rk=$key --param-sark=0
    has_keys $key
    say "REGISTER AND MOVE"
    move=(--register-move --param-rk=$key --param-sark=$other_key --relative-target-port=1
        --transport-id="$other_port")
    conflicts "${move[@]}"
    out --reserve --param-rk=$key --prout-type=7
    conflicts "${move[@]}"
    out --release --param-rk=$key --prout-type=7
    out --reserve --param-rk=$key --prout-type=1
    out "${move[@]}"
    has_keys $key $other_key
    is_held_as 1 $other_key
    access denied allowed
    other access allowed allowed
    say "REGISTER AND MOVE back, with UNREG"
    other gives_back $key "$(port_of $key | tr , +)"
    has_keys $key
    is_held_as 1 $key
    other access denied allowed
    out --clear --param-rk=$key
}

gives_back() {
    out --register-move --param-rk=$other_key --param-sark="$1" --relative-target-port=1 \
        --transport-id="${2//+/,}" --param-unreg
}

# The server is killed: what was registered with APTPL is there again, the rest is not.
restart() {
    out --register --param-sark=$key
    other out --register --param-sark=$other_key
    out --reserve --param-rk=$key --prout-type=1
    say "killed, without APTPL"
    ask restart
    access allowed allowed
    has_keys
    is_free
    other access allowed allowed
    out --register --param-sark=$key --param-aptpl
    out --reserve --param-rk=$key --prout-type=3
    other out --register --param-sark=$other_key --param-aptpl
    say "killed, with APTPL"
    ask restart
    access allowed allowed
    has_keys $key $other_key
    is_held_as 3
    other access denied denied
    out --clear --param-rk=$key
    ask restart
    access allowed allowed
    has_keys
    other access allowed allowed
}

IFS=, read -r -a given <<<"${given:-}"
[[ $action == begins ]] || disk=/dev/$(first_disk iscsi_tcp)
"$action" "${given[@]}"
