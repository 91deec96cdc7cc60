# Installs Debian on a LUN at `portal`, its own root, for a machine without a disk: a partition
# that firmware reads, and one for the root. With `action=check`: looks at what such a machine left.
. /vm/open-iscsi-lib.sh

node=(iscsiadm -m node -T "$target" -p "$portal")
boot=/mnt/boot root=/mnt/root

partitions() {
    sfdisk --quiet "$disk" <<TABLE
label: dos
label-id: $signature
start=2048, size=64MiB, type=ef, bootable
type=83
TABLE
    within 20 test -b "${disk}2"
    modprobe -a vfat nls_cp437 nls_ascii
    mkfs.fat -n BOOT "${disk}1"
    mkfs.ext4 -q -L root "${disk}2"
}

# A BIOS finds extlinux by the first block; UEFI is told which file to load.
boot_is_filled() {
    mount -o codepage=437,iocharset=ascii "${disk}1" $boot
    cp /boot/vmlinuz /boot/initrd $boot
    cat >$boot/extlinux.conf <<CONF
default debian
label debian
    linux /vmlinuz
    initrd /initrd
    append root=LABEL=root ro iscsi_auto ${arguments//,/ }
CONF
    extlinux --install $boot
    umount $boot
    dd if=/usr/lib/EXTLINUX/mbr.bin of="$disk" bs=440 count=1 conv=notrunc,fsync status=none
}

# All that such a machine uses: no languages, and of the kernel's modules those that it loads.
root_is_filled() {
    mount "${disk}2" $root
    local module unused=(./mnt/* ./boot/* ./var/tmp/* ./usr/share/* ./usr/lib/python3* perl perl5
        gconv ./usr/lib/udev/hwdb* ./usr/lib/modules/*/kernel)
    tar -C / --one-file-system "${unused[@]/#/--exclude=}" -cf - . | tar -C $root -xf -
    for module in configfs virtio_net iscsi_tcp sd_mod sg; do
        modprobe --show-depends $module
    done | awk '$1 == "insmod" { print $2 }' | xargs cp --parents -t $root
    # It learns its name from the firmware.
    : >$root/etc/iscsi/initiatorname.iscsi
    printf '#!/bin/sh\nexec /bin/bash /vm/init.sh\n' >$root/sbin/init
    chmod +x $root/sbin/init
    df -h $root
    umount $root
}

# The last writer flushed what it wrote, and its file system is whole.
is_left_in_order() {
    fsck.ext4 -f -n "${disk}2"
    mount -o ro "${disk}2" $root
    sha256sum --check $root/var/left
    umount $root
}

ip addr replace "$own/24" dev eth0
ip link set eth0 up
daemon_runs
log_begins
within 30 iscsiadm -m discovery -t sendtargets -p "$portal"
"${node[@]}" --login
within 30 has_disks iscsi_tcp 1
disk=/dev/$(first_disk iscsi_tcp)
within 30 test -b "$disk"
mkdir -p $boot $root
case $action in
install)
    partitions
    say root
    root_is_filled
    say boot
    boot_is_filled
    ;;
check)
    within 20 test -b "${disk}2"
    is_left_in_order
    ;;
esac
say logout
"${node[@]}" --logout
log_is_clean "Login/Text in progress"
