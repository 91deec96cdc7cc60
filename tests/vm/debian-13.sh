#!/bin/sh
# Makes a root directory of Debian 13 with its libiscsi and QEMU's tools, which are newer than those
# of Debian 12:
#
#   tests/vm/debian-13.sh FOLDER
#
# leaves FOLDER/root, in which root can run them by chroot. Nothing is made if FOLDER has what this
# very recipe makes.
set -eu

release=trixie
# They speak iSER by what ibverbs-providers has for a device.
packages=libiscsi-bin,qemu-utils,qemu-block-extra,ibverbs-providers
# Kept out of the root: pages to read.
unread='/usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/*'

main() {
    folder=$1
    recipe=$(sha256sum <"$0")
    if [ "$(cat "$folder/recipe" 2>/dev/null)" = "$recipe" ]; then
        return
    fi
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    set -f
    excluded=
    for path in $unread; do
        excluded="$excluded --dpkgopt=path-exclude=$path"
    done
    # shellcheck disable=SC2046,SC2086
    mmdebstrap --variant=minbase --include=$packages $excluded --dpkgopt=force-unsafe-io \
        $release "$folder/root" $(sources)
    rm -f "$folder/debian.sources"
    echo "$recipe" >"$folder/recipe"
}

# This machine's own place of Debian's packages, with the release's name in it; else mmdebstrap
# knows where Debian is.
sources() {
    own=/etc/apt/sources.list.d/debian.sources
    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    if [ -n "$codename" ] && grep -qsw "$codename" "$own"; then
        sed "s/\b$codename\b/$release/g" "$own" >"$folder/debian.sources"
        echo "$folder/debian.sources"
    fi
}

main "$@"
