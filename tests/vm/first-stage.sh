#!/bin/busybox sh
# The first process of a guest: mounts the root, unpacks the scripts, and goes there.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
while read -r module; do
    $b insmod "/modules/$module"
done </order
$b mount -t ext4 /dev/vda /mnt
$b mkdir -p /mnt/vm
$b tar -xf /dev/vdb -C /mnt/vm
$b umount /sys
$b umount /proc
$b mount --move /dev /mnt/dev
exec $b switch_root /mnt /bin/bash /vm/init.sh
