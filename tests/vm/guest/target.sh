# What LIO needs for a unit: a loop device, which discards and grows.
. /vm/lib.sh

config=/sys/kernel/config/target
backstore=$config/core/iblock_0/disk

unit_begins() {
    modprobe loop
    modprobe target_core_mod
    modprobe target_core_iblock
    # Where LIO keeps reservations and ALUA states.
    mkdir -p /var/target/pr /var/target/alua /etc/target/pr /etc/target/alua
    rm -f /var/tmp/disk
    truncate -s 128M /var/tmp/disk
    loop=$(losetup --find --show /var/tmp/disk)
    echo "$loop" >/tmp/loop
    mkdir -p "$backstore"
    echo "udev_path=$loop" >"$backstore/control"
    echo 1 >"$backstore/enable"
    echo lunar-vm >"$backstore/wwn/vpd_unit_serial"
    echo 1 >"$backstore/attrib/emulate_tpu"
    echo 1 >"$backstore/attrib/emulate_tpws"
    # What is unmapped reads as zeros, which is what we ask for before we unmap.
    echo 1 >"$backstore/attrib/unmap_zeroes_data"
}

unit_grows() {
    truncate -s 256M /var/tmp/disk
    losetup --set-capacity "$(cat /tmp/loop)"
}

unit_ends() {
    rmdir "$backstore"
    losetup --detach "$(cat /tmp/loop)"
}
