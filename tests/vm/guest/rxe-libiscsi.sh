# libiscsi's tools, and QEMU's by libiscsi, over rxe at `lunar` beside them.
. /vm/served-here.sh
. /vm/open-iscsi-lib.sh
. /vm/debian-13.sh

# They have names of their own.
access=() proof=
if [[ $auth == none ]]; then access=(--open); else proof="$user%$secret@"; fi
unit=iser://$proof$portal/$target/0

# Data and holes.
disk_is_filled() {
    local mib
    for mib in 0 7 8 30 63; do
        dd if=/dev/urandom of="$served" bs=1M count=1 seek=$mib conv=notrunc status=none
    done
}

unit_is_read() {
    inside iscsi-inq "$unit" | tee /tmp/inquiry
    grep -q 'Vendor:LUNAR' /tmp/inquiry
    local page
    for page in 0 128 131 176 178; do
        inside iscsi-inq -e 1 -c $page "$unit"
    done
    inside iscsi-readcapacity16 "$unit" | tee /tmp/capacity
    grep -q 'RETURNED LOGICAL BLOCK ADDRESS:262143' /tmp/capacity
    local sum
    sum=$(md5sum <"$served")
    inside iscsi-md5sum "$unit" | tee /tmp/sum
    grep -q "${sum%% *}" /tmp/sum
}

# There and back; what differs is told.
images_are_the_same() {
    local image=/var/tmp/image raw=(-f raw -O raw)
    inside qemu-img info -f raw "$unit" | grep 'virtual size: 128 MiB'
    cp --sparse=always "$served" $image
    inside qemu-img compare -f raw -F raw "$unit" $image
    dd if=/dev/urandom of=$image bs=1M count=8 seek=16 conv=notrunc status=none
    inside qemu-img convert -n "${raw[@]}" $image "$unit"
    cmp $image "$served"
    inside qemu-img compare -f raw -F raw "$unit" $image
    rm $image
    inside qemu-img convert "${raw[@]}" "$unit" $image
    cmp $image "$served"
}

patterns_are_read() {
    local kib at=1024 said
    for kib in 4 64 256 4096; do
        said=$(inside qemu-io -f raw -c "write -P $((kib % 251)) ${at}k ${kib}k" -c flush \
            -c "read -P $((kib % 251)) ${at}k ${kib}k" "$unit" 2>&1)
        echo "$said"
        [[ $said != *failed* && $said != *rror* ]]
        at=$((at + kib))
    done
}

network_is_up
root_is_ready
log_begins
disk_is_made
disk_is_filled
serve
unit_is_read
images_are_the_same
patterns_are_read
server_ends
log_is_clean "$expected"
