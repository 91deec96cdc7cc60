# Programs of Debian 13 in a root of their own: its libiscsi is 1.20. That of Debian 12, 1.19, leaves
# out immediate data that it has announced over iSER, and has 256 KiB for a command. iscsi-ls of both
# dies after a discovery over iSER, at any target.

inside() { chroot /debian-13 "$@"; }

root_is_ready() {
    local part
    mountpoint -q /debian-13/dev && return
    for part in dev proc sys var/tmp; do
        mount --rbind "/$part" "/debian-13/$part"
    done
}
