# A file system of two nodes on one disk: does what `action` says, with what is `given`. `stack` is
# the cluster stack, `transport` what brings the disk; `node` is 1 or 2 and `nodes` the addresses of
# both.
. "/vm/$transport-disk.sh"
. "/vm/cluster-$stack.sh"

IFS=, read -r -a given <<<"${given:-}"
IFS=, read -r -a nodes <<<"$nodes"
own=${nodes[$((node - 1))]}
shared=/srv/shared

mounts() {
    mkdir -p "$shared"
    mount -t "$stack" "$disk" "$shared"
}

# Files of all sizes and their sums, in a folder of this name.
writes() {
    mkdir "$shared/$1"
    cd "$shared/$1"
    local file
    for file in {1..8}; do head -c $((file * 9973)) /dev/urandom >"$file"; done
    sha256sum {1..8} >/tmp/sums
    cp /tmp/sums sums
    sync -f .
}

compares() {
    cd "$shared/$1"
    (($(wc -l <sums) == 8))
    sha256sum --check --quiet sums
}

# Adds one to a number, `$1` times, while the other node does so, too: each begins when both are
# there, so that without the lock steps would be lost.
counts() {
    touch "$shared/lock" "$shared/number"
    rm -f /tmp/counted
    (
        touch "$shared/counts-$node"
        until [[ -e $shared/counts-1 && -e $shared/counts-2 ]]; do sleep 0.1; done
        exec 9>>"$shared/lock"
        for ((step = 0; step < $1; step++)); do
            flock 9
            number=$(<"$shared/number")
            echo $((number + 1)) >"$shared/number"
            flock -u 9
        done
        touch /tmp/counted
    ) >/dev/null 3>&- &
}

# Both are through, and no step was lost.
counted() {
    within 120 test -e /tmp/counted
    say "counted to $(cat "$shared/number")"
    [[ -z ${1:-} || $(cat "$shared/number") == "$1" ]]
}

# Writes files until it is told to stop, each of its own number, and names them `.done` once they
# are on the disk.
fills() {
    rm -f /tmp/stop
    mkdir "$shared/$1"
    (
        cd "$shared/$1"
        for ((file = 1; ; file++)); do
            [[ ! -e /tmp/stop ]] || break
            printf '%050000d' "$file" >"$file"
            sync "$file"
            mv "$file" "$file.done"
            echo "$file" >/tmp/filled
        done
        touch /tmp/stopped
    ) >/tmp/fills 2>&1 3>&- &
    within 120 has_filled 4
    sync -f "$shared/$1"
}

has_filled() { (($(cat /tmp/filled) >= $1)); }

# The other node is dead. What was going on here goes on, and what was done there is here.
goes_on() {
    local before
    before=$(cat /tmp/filled)
    within 240 has_filled $((before + 8))
    say "it goes on"
    touch /tmp/stop
    within 120 test -e /tmp/stopped
    cd "$shared/$1"
    local file expected count=0
    for file in *.done; do
        printf -v expected '%050000d' "${file%.done}"
        [[ $(<"$file") == "$expected" ]]
        ((count += 1))
    done
    say "$count files of the dead node"
    ((count >= 4))
    writes after
    compares after
}

unmounts() { umount "$shared"; }

[[ $action == begins || $action == port_is_up ]] || disk=/dev/$(first_disk "$driver")
"$action" "${given[@]}"
