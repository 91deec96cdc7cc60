# The kernel's fcoe, whose server or cable meets a fault.
. /vm/ethernet.sh
. /vm/faults-lib.sh

# A target that is away keeps its disk for longer than any fault lasts.
target_is_kept() {
    local port
    for port in /sys/class/fc_remote_ports/rport*; do
        echo 120 >"$port/dev_loss_tmo"
    done
}

ethernet_is_up
modprobe sd_mod
modprobe sg
log_begins
port_begins
ask serve
within 60 has_disks fcoe 1
name=$(first_disk fcoe)
disk=/dev/$name
within 30 test -b "$disk"
within 30 grep -qv '^0$' "/sys/block/$name/size"
target_is_kept
if [[ -n ${command_timeout:-} ]]; then
    echo "$command_timeout" >"/sys/block/$name/device/timeout"
fi
# Little, so that nothing takes 3 s but what meets a fault: the kernel begins to recover then.
: "${small:=1M}" "${large:=4M}"
large_bytes=64k large_rate=2M
is_struck
[[ -z ${logged:-} ]] || was_logged "$logged"
grep -H . /sys/class/fc_host/host*/statistics/fcp_packet_aborts
sg_sync "$disk"
say logout
echo 1 >"/sys/block/$name/device/delete"
port_ends
within 20 eval '[[ $(disks fcoe | wc -l) == 0 ]]'
log_is_clean
