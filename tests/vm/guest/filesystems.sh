# A file system on a LUN at `portal`, by open-iscsi: `file_system`, ext4 or xfs, and `volume`, file
# or ram. What xfstests' generic quick group is about, as far as packages have it: fsx, stressors
# that compare, fio, a journal that is replayed, and fsck after each.
. /vm/open-iscsi-lib.sh

mount=/mnt
node=(iscsiadm -m node -T "$target" -p "$portal")

is_there() {
    ip addr replace "$own/24" dev eth0
    ip link set eth0 up
    daemon_runs
    modprobe "$file_system"
    iscsiadm -m node -o delete 2>/dev/null || true
    log_begins
    within 30 iscsiadm -m discovery -t sendtargets -p "$portal"
    "${node[@]}" --login
    within 30 has_disks iscsi_tcp 1
    name=$(first_disk iscsi_tcp)
    disk=/dev/$name
    within 30 test -b "$disk"
    unit_is_described "$disk"
    # A unit that unmaps, and that has a cache to be flushed if it is a file.
    (($(cat "/sys/block/$name/queue/discard_max_bytes") > 0))
    cat "/sys/block/$name/queue/write_cache"
}

mounts() { mount -t "$file_system" "$disk" "$mount"; }

# Whatever was not written back is, and nothing of it stays in memory.
forgets() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# Without repairing anything: what is not as it should be fails.
is_sound() {
    case $file_system in
    ext4) e2fsck -fn "$disk" ;;
    xfs) xfs_repair -n "$disk" ;;
    esac >/tmp/fsck 2>&1 || { cat /tmp/fsck; fail "the file system is damaged"; }
}

is_made() {
    case $file_system in
    ext4) mkfs.ext4 -q "$disk" ;;
    # With what the quick group clones.
    xfs) mkfs.xfs -q -f -m reflink=1 "$disk" ;;
    esac
}

# Each block is trimmed, then written; in the end it is read as written. fio 3.33 ends itself where
# what it verifies is to be trimmed (trim_percentage), so zeros are looked for apart from it.
trims_and_writes() {
    fio --name=trims --filename="$disk" --size=2M --direct=1 --ioengine=libaio --iodepth=8 \
        --rw=randtrimwrite --bs=16k --verify=crc32c --verify_fatal=1 --fsync=64 \
        --output-format=terse --terse-version=3 | cut -d';' -f3,5,6,47
    flushes_and_discards "$disk"
}

# Each second nothing stays in memory, so that what is compared comes from the LUN.
forgetting() {
    until [[ -e /tmp/stop ]]; do
        forgets
        sleep 1
    done
}

# One file in memory and in the file system, by every way to change it.
exercised() {
    cat >/tmp/fsx.toml <<'CONF'
flen = 1048576
[opsize]
max = 65536
[weights]
close_open = 1
truncate = 2
fsync = 1
fdatasync = 1
invalidate = 1
posix_fallocate = 2
punch_hole = 4
copy_file_range = 2
sendfile = 2
CONF
    mkdir -p "$mount/fsx"
    /usr/local/bin/fsx -q -f /tmp/fsx.toml -N "$1" -S 14 -P /tmp "$mount/fsx/file"
}

# What it keeps of each stressor is compared with what it wrote.
stressed() {
    mkdir -p "$mount/stress"
    local one=(--hdd 1 --hdd-bytes 16m --hdd-opts "wr-rnd,rd-rnd,fsync" --aio 1 --fallocate 1
        --fallocate-bytes 16m --fpunch 1 --fiemap 1 --fiemap-bytes 16m --dentry 1 --dir 1
        --dirdeep 1 --rename 1 --link 1 --symlink 1 --filename 1 --xattr 1 --seek 1
        --sync-file 1 --sync-file-bytes 16m --iomix 1 --iomix-bytes 16m --mmap 1 --mmap-file
        --mmap-bytes 16m)
    stress-ng --temp-path "$mount/stress" --verify --timeout "$1" --metrics-brief --oomable \
        "${one[@]}"
}

# A tree of files, and their sums.
tree_is_made() {
    cp -a /usr/lib/python3.*/[a-e]* "$1"
    (cd "$1" && find . -type f -print0 | xargs -0 md5sum) >"$2"
}

tree_is_whole() { (cd "$1" && md5sum --quiet -c "$2"); }

# Mounted, filled, emptied by half, trimmed and checked, again and again.
cycled() {
    local number
    for number in 1 2; do
        mkdir "$mount/tree-$number"
        tree_is_made "$mount/tree-$number" "/tmp/sums-$number"
        if ((number > 1)); then
            rm -r "$mount/tree-$((number - 1))"
        fi
        fstrim -v "$mount" | tee /tmp/trimmed
        grep -qv ' 0 B' /tmp/trimmed
        forgets
        tree_is_whole "$mount/tree-$number" "/tmp/sums-$number"
        umount "$mount"
        is_sound
        mounts
        tree_is_whole "$mount/tree-$number" "/tmp/sums-$number"
    done
    if [[ $file_system == xfs ]]; then
        cp -r --reflink=always "$mount/tree-2" "$mount/cloned"
        tree_is_whole "$mount/cloned" /tmp/sums-2
    fi
}

# Ends a file system as a crash would, without what is in its log: FS_IOC_SHUTDOWN with NOLOGFLUSH.
shut_down() {
    python3 -c 'import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack("I", 2))' "$mount"
}

# What was flushed before a crash is there after it.
replayed() {
    local file
    mkdir "$mount/kept"
    for file in {1..20}; do
        dd if=/dev/urandom of="$mount/kept/$file" bs=48k count=1 conv=fsync status=none
    done
    (cd "$mount/kept" && md5sum -- *) >/tmp/kept
    # What is not flushed may be lost.
    mkdir "$mount/lost"
    for file in {1..20}; do
        head -c 48000 /dev/urandom >"$mount/lost/$file"
    done
    shut_down
    umount "$mount"
    mounts
    tree_is_whole "$mount/kept" /tmp/kept
    umount "$mount"
    is_sound
    mounts
}

# A file becomes larger, and the file system with it; a RAM disk does not.
grown() {
    [[ $volume == file ]] || return 0
    grows "$disk"
    local before
    before=$(stat -fc %b "$mount")
    case $file_system in
    ext4) resize2fs "$disk" ;;
    xfs) xfs_growfs "$mount" ;;
    esac
    (($(stat -fc %b "$mount") > before * 3 / 2))
}

is_there
say trims
trims_and_writes
is_made
mounts
rm -f /tmp/stop
forgetting &
forgetting=$!
say fsx
exercised 300
say stress
stressed 6
touch /tmp/stop
wait "$forgetting"
say fio
fio --name=files --directory="$mount" --direct=1 --nrfiles=4 --size=4M --ioengine=libaio \
    --iodepth=4 \
    --rw=randrw --bs=4k --fsync_on_close=1 --fdatasync=64 --verify=crc32c --verify_fatal=1 \
    --output-format=terse --terse-version=3 | cut -d';' -f3,5,6,47
rm -rf "$mount"/fsx "$mount"/stress "$mount"/files*
say cycles
cycled
say crash
replayed
say grow
grown
head -c 64M /dev/zero | tr "\0" x >"$mount/filling"
sync
ask filled
say emptied
rm -rf "${mount:?}"/*
sync
fstrim -v "$mount"
umount "$mount"
is_sound
ask emptied
say logout
"${node[@]}" --logout
iscsiadm -m session && fail "there is a session after the logout"
# What a file system says of being shut down.
crash='shut down requested|Aborting journal|User initiated shutdown'
crash+='|Shutting down filesystem|unmount the filesystem'
log_is_clean "Capacity data has changed|Login/Text in progress|$crash"
