#!/bin/sh
# The package in a clean Debian: installed, started, used, upgraded, removed and purged.
#
#   tests/package/clean-root.sh PACKAGE.deb FOLDER
#
# FOLDER keeps the root, which is made once from Debian's packages; each run writes into a layer of
# its own above it. There is no service manager, so the daemon is started as the unit says.
set -eu

packages=systemd-standalone-sysusers
release=bookworm
here=$(dirname "$(realpath "$0")")

main() {
    deb=$(realpath "$1") folder=$2
    mkdir -p "$folder"
    folder=$(realpath "$folder")
    make_root
    run=$(mktemp -d "$folder/run.XXXX")
    trap 'rm -rf "$run"' EXIT
    mkdir "$run/layer" "$run/root"
    cp "$deb" "$run/old.deb"
    make_newer
    # Nothing of the story is left when its first process ends: mounts, daemons, loopback.
    unshare --mount --net --pid --fork --kill-child "$0" --inside "$folder/root" "$run"
}

make_root() {
    recipe=$release:$packages
    if [ "$(cat "$folder/recipe" 2>/dev/null)" = "$recipe" ]; then
        return
    fi
    rm -rf "$folder/root"
    mmdebstrap --quiet --variant=minbase --include=$packages --dpkgopt=force-unsafe-io \
        $release "$folder/root" $(sources)
    echo "$recipe" >"$folder/recipe"
}

# This machine's own sources if they are of that release; else mmdebstrap knows where Debian is.
sources() {
    own=/etc/apt/sources.list.d/debian.sources
    if grep -qsw "$release" "$own"; then
        echo "$own"
    fi
}

# The same package by a higher version, with a new line in the configuration that it brings.
make_newer() {
    dpkg-deb --raw-extract "$run/old.deb" "$run/newer"
    sed -i 's/^Version: .*/Version: 999.0-1/' "$run/newer/DEBIAN/control"
    echo '# A line of the newer package.' >>"$run/newer/etc/lunar/lunar.toml"
    rm -f "$run/newer/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Znone --build "$run/newer" "$run/newer.deb" >/dev/null
    rm -rf "$run/newer"
}

# In namespaces of its own: makes the root and goes on in there.
inside() {
    lower=$1 run=$2
    mount --make-rprivate /
    # In memory, because this folder may be a layer itself, where no other can be written.
    mount -t tmpfs tmpfs "$run/layer"
    mkdir "$run/layer/upper" "$run/layer/work"
    layers=lowerdir=$lower,upperdir=$run/layer/upper,workdir=$run/layer/work
    mount -t overlay overlay -o "$layers" "$run/root"
    mount -t proc proc "$run/root/proc"
    mount --rbind /dev "$run/root/dev"
    mount -t tmpfs tmpfs "$run/root/run"
    ip link set lo up
    cp "$run/old.deb" "$run/newer.deb" "$here/story.sh" "$run/root/root/"
    exec env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$run/root" sh /root/story.sh
}

case $1 in
--inside)
    shift
    inside "$@"
    ;;
*) main "$@" ;;
esac
