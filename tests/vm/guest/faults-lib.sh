# A disk that is written, read back and compared while something goes wrong with its server.

# Writes and compares until the file `stop` is there: `load NAME BYTES DEPTH OFFSET SIZE RATE`. No
# pass writes what the one before it wrote.
load() {
    local pass=0
    until [[ -e /tmp/stop ]]; do
        pass=$((pass + 1))
        fio --name="$1" --bs="$2" --iodepth="$3" --offset="$4" --size="$5" --rate="$6" \
            --filename="$disk" --direct=1 --ioengine=libaio --rw=randwrite --randseed="$pass" \
            --verify=crc32c --verify_backlog="$((4 * $3))" --verify_fatal=1 \
            --continue_on_error="${continue_on_error:-none}" \
            --output-format=terse --terse-version=3 >"/tmp/fio-$1" 2>&1 || exit 1
        say_wait "$1"
    done
    say "$pass passes of $1"
}

# Tells of an I/O that took longer than a second. fio's fields 39 and 80 are the longest read and
# write of a pass, from its issue to its end, in microseconds.
say_wait() {
    local longest
    longest=$(awk -F';' '{ us = $39 > $80 ? $39 : $80; if (us > 1e6) printf "%.2f", us / 1e6 }' \
        "/tmp/fio-$1")
    if [[ -n $longest ]]; then say "an I/O of $1 took $longest s"; fi
}

# Two loads, of which one is at work while the other begins a pass.
load_begins() {
    rm -f /tmp/stop
    load small 4k 8 0 "${small:-2M}" 1M &
    loads=($!)
    load large "${large_bytes:-512k}" 4 64M "${large:-16M}" "${large_rate:-8M}" &
    loads+=($!)
}

load_ends() {
    touch /tmp/stop
    local load
    for load in "${loads[@]}"; do
        wait "$load" || fails_with_fio
    done
    cut -d';' -f3,5,6,47 /tmp/fio-*
}

fails_with_fio() {
    cat /tmp/fio-*
    fail "fio found an error"
}

written() { awk '{ print $5 }' "/sys/block/${disk#/dev/}/stat"; }

# Waits until writes have gone on, for as long as a recovery may take.
fio_goes_on() {
    local end=$((SECONDS + 100)) enough=$(($(written) + 50)) load
    until (($(written) > enough)); do
        for load in "${loads[@]}"; do
            kill -0 "$load" 2>/dev/null || fails_with_fio
        done
        ((SECONDS < end)) || fail "fio does not go on"
        sleep 0.2
    done
}

# Something that begins, lasts some seconds, and ends: `lasts BEGIN END SECONDS`. From its second
# second on nothing is done.
lasts() {
    ask "$1"
    sleep 1
    local before
    before=$(written)
    sleep $(($3 - 1))
    (($(written) == before)) || fail "writes are done in spite of $1"
    ask "$2"
}

strike() {
    say "$1"
    case $1 in
    kill-*) lasts kill serve "${1#*-}" ;;
    freeze-*) lasts freeze thaw "${1#*-}" ;;
    cut-*) lasts cut join "${1#*-}" ;;
    grow) grows "$disk" ;;
    reset-*) sg_reset --no-esc "--${1#*-}" "$disk" ;;
    *) ask "$1" ;;
    esac
    local struck=$SECONDS
    fio_goes_on
    say "fio goes on after $((SECONDS - struck)) s"
}

# The loads, with all strikes in them.
is_struck() {
    load_begins
    fio_goes_on
    local strike
    for strike in ${strikes//,/ }; do
        strike "$strike"
    done
    load_ends
}

# The kernel's log has no more I/O errors than lines that match.
io_errors_are_explained_by() {
    dmesg | awk -v cause="$1" '
        /I\/O error, dev/ { errors++ }
        $0 ~ cause { causes++ }
        END { exit errors > causes }' || fail "I/O errors without a cause in the log"
}

# The kernel's log has it as often as that: `was_logged WORDS:COUNT`.
was_logged() {
    (($(dmesg | grep -c "${1%:*}") >= ${1##*:})) || fail "not logged: $1"
}
