# libiscsi's conformance suite at `lunar` beside it, over TCP and over rxe: what passes over the one
# passes over the other. What becomes of a test is in /tmp/tcp and /tmp/iser, line by line.
. /vm/served-here.sh
. /vm/open-iscsi-lib.sh
. /vm/debian-13.sh

access=(--open)
volume=ram:256M

# The verdict of each test: `passed`, `skipped`, `failed`. CUnit counts what was skipped as passed.
verdicts() {
    awk -v suite="$1" '
        function end() { if (name) print suite "." name, skipped && verdict ? "skipped" : verdict ? verdict : "died" }
        /^Run Summary:/ { end(); name = ""; exit }
        /^  Test: / {
            end()
            name = $2; verdict = ""; skipped = 0
            sub(/^  Test: [^ ]+ \.\.\./, "")
        }
        /\[SKIPPED\]|--dataloss flag is not set/ { skipped = 1 }
        /^passed/ && !verdict { verdict = "passed" }
        /^FAILED/ && !verdict { verdict = "failed" }
        END { end() }'
}

# Two paths, as some tests want them.
suite_runs() {
    local address=$2://$portal/$target/0
    timeout 60 chroot /debian-13 iscsi-test-cu -d -t "ALL.$1" "$address" "$address" >"/tmp/$2-$1" 2>&1 || true
    verdicts "$1" <"/tmp/$2-$1" >>"/tmp/$2"
}

network_is_up
root_is_ready
log_begins
disk_is_made
serve
rm -f /tmp/iscsi /tmp/iser
for suite in $(inside iscsi-test-cu -l | awk -F. '$1 == "ALL" && NF == 2 { print $2 }'); do
    say "$suite"
    suite_runs "$suite" iscsi
    suite_runs "$suite" iser
done
diff /tmp/iscsi /tmp/iser || true
