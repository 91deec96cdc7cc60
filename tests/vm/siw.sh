#!/bin/sh
# Builds siw, Linux's software iWARP, which no kernel of Debian has, for the kernel that the guests
# boot, from nothing but Debian's packages:
#
#   tests/vm/siw.sh FOLDER
#
# leaves FOLDER/siw.ko, and the version of its kernel in FOLDER/version. The compiler is Debian
# 12's own, as the headers ask for the one that has built the kernel. Nothing is made if FOLDER has
# what this very recipe makes.
set -eu

release=bookworm
packages=linux-headers-amd64,linux-source,make,xz-utils
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
        --customize-hook="'$(realpath "$0")' --of '$(realpath "$folder")' \"\$1\"" \
        --format=null $release /dev/null $(sources)
    echo "$recipe" >"$folder/recipe"
}

# This machine's own sources if they are of that release; else mmdebstrap knows where Debian is.
sources() {
    own=/etc/apt/sources.list.d/debian.sources
    if grep -qsw "$release" "$own"; then
        echo "$own"
    fi
}

# Runs inside of mmdebstrap, when all packages are in `root`.
build() {
    folder=$1 root=$2
    version=$(ls "$root/lib/modules")
    # shellcheck disable=SC2016
    chroot "$root" sh -euc 'mkdir /siw && cd /siw
        xz -dc /usr/src/linux-source-*.tar.xz |
            tar -x --strip-components=5 --wildcards "*/drivers/infiniband/sw/siw/*"
        make -C "/lib/modules/$1/build" M=/siw CONFIG_RDMA_SIW=m modules' sh "$version"
    cp "$root/siw/siw.ko" "$folder/"
    echo "$version" >"$folder/version"
}

if [ "$1" = --of ]; then
    shift
    build "$@"
else
    main "$@"
fi
