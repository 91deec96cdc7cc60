#!/bin/sh
# Runs in the clean root, as its administrator; see clean-root.sh.
set -eu

unit=/usr/lib/systemd/system/lunar.service
wanted=/etc/systemd/system/multi-user.target.wants/lunar.service
target=iqn.2026-11.org.example:san

main() {
    dpkg-query -f '${Package}\n' -W | sort >/root/before
    step install
    dpkg --install /root/old.deb
    has_everything
    step start
    start
    step use
    use
    step upgrade
    upgrade
    step remove
    stop
    remove
    step purge
    purge
    echo "installed, started, used, upgraded, removed and purged"
}

step() {
    echo "== $1"
    now=$1
}

fail() {
    echo "FAILED at $now: $*"
    [ ! -e /root/log ] || tail -n 20 /root/log
    exit 1
}

# must WHAT COMMAND...: a command that has to end well.
must() {
    what=$1
    shift
    "$@" || fail "$what"
}

must_not() {
    what=$1
    shift
    if "$@"; then fail "$what"; fi
}

has_everything() {
    must "the unit is enabled" test -h $wanted
    must "the user" sh -c 'getent passwd lunar | grep -q :/var/lib/lunar:'
    must "the owner of the state" test "$(stat -c %U:%a /var/lib/lunar)" = lunar:750
    must "the owner of the configuration" test "$(stat -c %U:%a /etc/lunar/lunar.toml)" = lunar:640
    must "a conffile" sh -c 'dpkg-query -W -f "\${Conffiles}" lunar | grep -q /etc/lunar/lunar.toml'
    for page in lunar lunar-daemon lunar-configuration lunar-shell; do
        must "page $page" sh -c "gzip -dc /usr/share/man/man1/$page.1.gz | grep -q '^.SH NAME'"
    done
    completion=/usr/share/bash-completion/completions/lunar
    must "completion" bash -c ". $completion && complete -p lunar >/dev/null"
    must "one source of the unit" sh -c "lunar unit | cmp - $unit"
    must "the version" sh -c 'dpkg-query -W -f "\${Version}" lunar | grep -q "^$(lunar --version |
        cut -d" " -f2)-"'
}

# What the unit says, without a service manager.
value() {
    sed -n "s/^$1=+\\?//p" $unit
}

start() {
    $(value ExecStartPre)
    install -d -o lunar -g lunar "/run/$(value RuntimeDirectory)"
    # shellcheck disable=SC2046
    STATE_DIRECTORY=/var/lib/$(value StateDirectory) setpriv --reuid "$(value User)" \
        --regid "$(value Group)" --clear-groups --inh-caps=-all --no-new-privs \
        $(value ExecStart) >>/root/log 2>&1 &
    daemon=$!
    for _ in $(seq 100); do
        if lunar history >/dev/null 2>&1; then return; fi
        kill -0 $daemon || fail "the daemon has ended"
        sleep 0.1
    done
    fail "the daemon does not answer"
}

stop() {
    kill $daemon
    wait $daemon || fail "the daemon has not ended well"
}

use() {
    # As it comes it is closed, and serves nothing.
    must_not "a portal that is open" sh -c "lunar ls 127.0.0.1 2>/dev/null"
    install -d -o lunar -g lunar /srv/lunar
    lunar set "volume.vm1.address=file:/srv/lunar/vm1.img?sparse" volume.vm1.size=64M \
        "target.\"$target\".portals=[\"127.0.0.1\"]" "target.$target.luns.0=vm1" \
        "target.$target.allow=[\"*\"]"
    lunar ls 127.0.0.1 >/root/listed
    must "the LUN" grep -q "$target .* 0 .*64.0 MiB" /root/listed
    must "comments stay" grep -q '^# The configuration of the Lunar' /etc/lunar/lunar.toml
    echo "what was written" >/root/text
    truncate -s 64M /root/text
    lunar copy file:/root/text "iscsi://127.0.0.1/$target/0"
}

upgrade() {
    cp /etc/lunar/lunar.toml /root/configured
    # As unattended upgrades do: what the administrator has changed stays.
    dpkg --force-confold --install /root/newer.deb
    must "the newer version" sh -c 'dpkg-query -W -f "\${Version}" lunar | grep -q "^999.0-1$"'
    must "the configuration is kept" cmp /root/configured /etc/lunar/lunar.toml
    must "the newer one beside it" grep -q '^# A line of the newer' /etc/lunar/lunar.toml.dpkg-dist
    must "its owner" test "$(stat -c %U:%a /etc/lunar/lunar.toml)" = lunar:640
    stop
    start
    lunar ls 127.0.0.1 | cmp - /root/listed || fail "what is served"
    must "what was written" lunar verify file:/root/text "iscsi://127.0.0.1/$target/0"
    must "generations" sh -c 'lunar history | grep -q set'
}

remove() {
    dpkg --remove lunar
    must_not "the program" test -e /usr/bin/lunar
    must "the configuration stays" cmp /root/configured /etc/lunar/lunar.toml
    must "the state stays" test -d /var/lib/lunar/history
}

purge() {
    dpkg --purge lunar
    dpkg-query -f '${Package}\n' -W | sort | cmp - /root/before || fail "packages"
    left=$(find / -xdev -iname '*lunar*' ! -path '/root/*' ! -path '/proc/*' ! -path '/srv/*')
    must "nothing is left, but $left" test -z "$left"
    must "the volume is the administrator's" test -s /srv/lunar/vm1.img
}

main
