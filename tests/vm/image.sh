#!/bin/sh
# Makes what the guests boot, from nothing but Debian's packages:
#
#   tests/vm/image.sh small|large|rdma FOLDER
#
# leaves FOLDER/{vmlinux,initrd,root.img}. The root is Debian 12 whatever this machine runs, since
# its kernel is the peer. Nothing is made if FOLDER has what this very recipe makes. The small root
# has what the starred cells use, the large one what any cell does but those of RDMA, whose root has
# the kernel's RDMA besides what the small one has. It has siw, too, if that can be built, and else
# FOLDER/without-siw tells the reason. Programs of Debian 13 are in its /debian-13.
set -eu

release=bookworm
# What the guests' scripts use. util-linux and coreutils are there anyway.
packages=kmod,udev,iproute2,procps,busybox-static,xz-utils,open-iscsi,multipath-tools,sg3-utils,fio
# The programs of Open-FCoE, and the names of cards that they show. Rings are set by ethtool.
packages=$packages,fcoe-utils,pci.ids,ethtool
more_packages=mdadm,dmsetup,xfsprogs,e2fsprogs,python3,stress-ng
more_packages=$more_packages,corosync,dlm-controld,gfs2-utils,ocfs2-tools
# All that fence_scsi and fence_mpath import; fence-agents itself would bring clients of clouds.
more_packages=$more_packages,python3-pexpect,python3-pycurl
# For a machine that boots from a LUN.
more_packages=$more_packages,fdisk,dosfstools,extlinux,syslinux-common,initramfs-tools
# For RDMA: `rdma` is in iproute2. tgt speaks iSER by what `lunar` loads, too.
rdma_packages=e2fsprogs,ibverbs-providers,librdmacm1,tgt
# Of crates.io, since no package of Debian has it.
exerciser='fsx --version 0.3.2'
# Kept out of the root: pages to read, and drivers of hardware that no guest has.
unread='/usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/*'
no_drivers='sound drivers/infiniband/hw drivers/gpu drivers/media drivers/staging drivers/iio
    drivers/usb drivers/hid drivers/input drivers/bluetooth drivers/hwmon drivers/isdn
    drivers/platform drivers/thunderbolt drivers/net/wireless drivers/net/can drivers/net/usb
    drivers/net/ethernet net/wireless net/mac80211 net/bluetooth net/mac802154'
# What the first stage needs to find the root.
first_modules='virtio_pci virtio_blk ext4 crc32c_generic'

main() {
    size=$1 folder=$2
    case $size in
    small) ;;
    large) packages=$packages,$more_packages ;;
    rdma) packages=$packages,$rdma_packages ;;
    *) echo "image.sh: $size is not small, large or rdma" >&2 && exit 2 ;;
    esac
    recipe=$size\ $(cat "$0" "$(dirname "$0")/first-stage.sh" | sha256sum)
    [ "$size" != rdma ] || recipe=$recipe\ $(parts_of_rdma | sha256sum)
    if [ "$(cat "$folder/recipe" 2>/dev/null)" = "$recipe" ]; then
        return
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    if [ "$size" = rdma ]; then
        siw_is_built
        "$(dirname "$0")/debian-13.sh" "$folder/../vm-debian-13"
    fi
    set -f
    excluded=
    for path in $unread; do
        excluded="$excluded --dpkgopt=path-exclude=$path"
    done
    # shellcheck disable=SC2086
    mmdebstrap --variant=minbase --include=$packages $excluded --dpkgopt=force-unsafe-io \
        --customize-hook="'$(realpath "$0")' --of $size '$(realpath "$folder")' \"\$1\"" \
        --format=null $release /dev/null $(sources)
    echo "$recipe" >"$folder/recipe"
}

# What the root with RDMA is made by besides.
parts_of_rdma() { cat "$(dirname "$0")/siw.sh" "$(dirname "$0")/debian-13.sh"; }

# Without siw the recipe is not that of this script, so that the next run tries again.
siw_is_built() {
    if ! "$(dirname "$0")/siw.sh" "$folder/../vm-siw"; then
        echo "tests/vm/siw.sh could not build siw" >"$folder/without-siw"
        recipe="$recipe without siw"
    fi
}

# This machine's own sources if they are of that release; else mmdebstrap knows where Debian is.
sources() {
    own=/etc/apt/sources.list.d/debian.sources
    if grep -qsw "$release" "$own"; then
        echo "$own"
    fi
}

# Runs inside of mmdebstrap, when all packages are in `root`.
finish() {
    size=$1 folder=$2 root=$3
    add_kernel
    [ "$size" != large ] || add_fence_agents
    add_first_stage
    [ "$size" != large ] || add_boot
    [ "$size" != large ] || add_exerciser
    [ "$size" != rdma ] || cp -a "$folder/../vm-debian-13/root" "$root/debian-13"
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
    truncate -s 1200M "$folder/root.img"
    # Without what mmdebstrap has mounted in there.
    mkdir "$folder/root"
    mount --bind "$root" "$folder/root"
    mkfs.ext4 -q -O ^has_journal -E root_owner=0:0 -d "$folder/root" "$folder/root.img" || bad=1
    umount "$folder/root"
    rmdir "$folder/root"
    [ -z "${bad:-}" ]
}

# Leaves a package in the folder, without those that it depends on.
download() {
    (cd "$folder" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG \
        apt-get -o APT::Sandbox::User=root download "$1")
}

add_fence_agents() {
    download fence-agents
    dpkg-deb -x "$folder"/fence-agents_*.deb "$folder/agents"
    for path in sbin/fence_scsi sbin/fence_mpath share/fence; do
        cp -a "$folder/agents/usr/$path" "$root/usr/$path"
    done
    rm -r "$folder"/fence-agents_*.deb "$folder/agents"
}

# The package itself would bring an initramfs of its own, and the programs that make one.
add_kernel() {
    package=$(APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache depends linux-image-amd64 |
        awk '/Depends: linux-image/ { print $2 }')
    download "$package"
    mkdir "$folder/kernel"
    dpkg-deb -x "$folder"/linux-image-*.deb "$folder/kernel"
    rm "$folder"/linux-image-*.deb
    version=$(ls "$folder/kernel/lib/modules")
    for drivers in $no_drivers; do
        rm -rf "$folder/kernel/lib/modules/$version/kernel/$drivers"
    done
    if [ "$size" != rdma ]; then
        rm -rf "$folder/kernel/lib/modules/$version/kernel/drivers/infiniband"
    fi
    cp -a "$folder/kernel/lib/modules" "$root/usr/lib/"
    [ "$size" != rdma ] || add_siw
    chroot "$root" depmod "$version"
    unpack_kernel "$folder/kernel/boot/vmlinuz-$version" >"$folder/vmlinux"
    cp "$folder/kernel/boot/vmlinuz-$version" "$folder/kernel/boot/config-$version" "$root/boot"
    rm -rf "$folder/kernel"
}

# The module for this very kernel.
add_siw() {
    built=$(cat "$folder/../vm-siw/version" || true)
    if [ "$built" = "$version" ] && [ ! -e "$folder/without-siw" ]; then
        mkdir "$root/usr/lib/modules/$version/extra"
        cp "$folder/../vm-siw/siw.ko" "$root/usr/lib/modules/$version/extra/"
    elif [ ! -e "$folder/without-siw" ]; then
        echo "siw was built for Linux $built, and the guest boots $version" >"$folder/without-siw"
    fi
}

# Emulated, a kernel takes 15 s to unpack itself. Where its payload begins, and how long it is,
# stands in its header (Documentation/arch/x86/boot.rst of Linux).
unpack_kernel() {
    sectors=$(od -An -tu1 -j 497 -N 1 "$1")
    # shellcheck disable=SC2046
    set -- "$1" $(od -An -tu4 -j 584 -N 8 "$1")
    tail -c "+$(((sectors + 1) * 512 + $2 + 1))" "$1" | head -c "$3" | xz -dc --single-stream
}

# Linked with a C library of its own, as the guest's may be an older one. It is built for little
# time, since it is the guest that is slow.
add_exerciser() {
    # shellcheck disable=SC2086
    RUSTFLAGS='-C target-feature=+crt-static' CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_TARGET_DIR=$folder/../vm-programs \
        cargo install --locked --no-track --root "$root/usr/local" \
        --target x86_64-unknown-linux-gnu $exerciser
}

# Loads what finds the root, and goes there.
add_first_stage() {
    stage=$root/first-stage
    mkdir -p "$stage/bin" "$stage/proc" "$stage/sys" "$stage/dev" "$stage/mnt" "$stage/modules"
    cp "$root/bin/busybox" "$stage/bin/"
    for module in $first_modules; do
        chroot "$root" modprobe -S "$version" --show-depends "$module"
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
        cp "$root$file" "$stage/modules/"
        basename "$file" >>"$stage/order"
    done
    cp "$(dirname "$0")/first-stage.sh" "$stage/init"
    chroot "$root" sh -c 'cd first-stage && find . | busybox cpio -o -H newc' >"$folder/initrd"
    rm -rf "$stage"
}

# What a guest without a disk boots from a LUN: Debian's own initramfs, which finds its root by what
# the firmware left (iBFT). Emulated, gzip is fastest to unpack.
add_boot() {
    mv "$root/boot/vmlinuz-$version" "$root/boot/vmlinuz"
    printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/vm"
    printf '%s\n' virtio_pci virtio_net sd_mod ext4 crc32c_generic \
        >>"$root/etc/initramfs-tools/modules"
    chroot "$root" mkinitramfs -o /boot/initrd "$version"
}

if [ "$1" = --of ]; then
    shift
    finish "$@"
else
    main "$@"
fi
