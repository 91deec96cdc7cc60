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

port_is_up
ask serve
disk_is_found 60 30
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
disk_is_gone 20
# Of Linux 6.1, libfc waits with its lock held if an abort meets an answer, and warns of it.
traces=
[[ -z ${lost:-} ]] ||
    traces='fc_eh_abort[+]|last function: scmd_eh_abort_handler|Workqueue: +0x0 [(]scsi_tmf_0[)]'
log_is_clean '' "$traces"
