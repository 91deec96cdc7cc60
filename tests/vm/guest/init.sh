# Process 1 of a guest. It does what comes in on the second serial port, `SCRIPT NAME=VALUE…` on a
# line, and answers with `exit STATUS`. What scripts print goes to the console, the first serial
# port.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mkdir -p /run/lock
ln -s /proc/self/fd /dev/fd
modprobe configfs
mount -t configfs config /sys/kernel/config
modprobe virtio_net
ip link set lo up
cd /vm

exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo "up $(uname -r)" >&3
while read -r -u 3 -a words; do
    script=${words[0]}
    [[ $script == off ]] && break
    echo "=== ${words[*]}"
    env "${words[@]:1}" bash -u "/vm/$script"
    status=$?
    ((status == 0)) || { echo "=== $script failed with $status"; dmesg | tail -n 2000; }
    echo "exit $status" >&3
done
# Since a script last cleared it. Threads of the kernel that wait are those that a cell waits for.
echo "=== the kernel's log at the end"
dmesg | tail -n 300
for task in /proc/[0-9]*; do
    grep -q '^State:.*D' "$task/status" 2>/dev/null || continue
    echo "=== waits: $(cat "$task/comm")"
    cat "$task/stack"
done
sync
echo o >/proc/sysrq-trigger
sleep 60
