# open-iscsi at `portal`, whose server or network meets a fault.
. /vm/open-iscsi-lib.sh
. /vm/faults-lib.sh

node=(iscsiadm -m node -T "$target" -p "$portal")
set_() { "${node[@]}" -o update -n "$1" -v "$2"; }

# Either way, as the wire has them: a frame that is lost is not many that were merged.
frames_are_lost() {
    modprobe ifb numifbs=1
    ip link set ifb0 up
    ip link set eth0 gso_max_segs 1 gro_max_size 1
    tc qdisc replace dev eth0 root netem loss "$lost" limit 10000
    tc qdisc replace dev eth0 ingress
    tc filter replace dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
    tc qdisc replace dev ifb0 root netem loss "$lost" limit 10000
}

frames_were_lost() {
    local device
    for device in eth0 ifb0; do
        tc -s qdisc show dev "$device" root | tee /tmp/queue
        grep -q 'dropped [1-9]' /tmp/queue
        tc qdisc del dev "$device" root
    done
    tc qdisc del dev eth0 ingress
    ip link set eth0 gso_max_segs 65535 gro_max_size 65536
}

# Without NOPs, SCSI's own error handling finds out: it aborts commands, and ends the session if
# that is not answered either.
commands_time_out() {
    set_ 'node.conn[0].timeo.noop_out_interval' 0
    set_ 'node.conn[0].timeo.noop_out_timeout' 0
    set_ node.session.err_timeo.abort_timeout 8
}

# The session has counted that: `was_counted NAME:COUNT`.
was_counted() {
    iscsiadm -m session --stats >/tmp/statistics
    (($(awk -v name="${1%:*}:" '$1 == name { print $2 }' /tmp/statistics) >= ${1#*:})) ||
        fail "not counted: $1"
}

network_is_up
daemon_runs
iscsiadm -m node --logoutall=all 2>/dev/null || true
log_begins
ask serve
[[ -z ${lost:-} ]] || frames_are_lost
within 90 iscsiadm -m discovery -t sendtargets -p "$portal" "${interface[@]}"
set_ node.session.timeo.replacement_timeout 120
[[ -z ${command_timeout:-} ]] || commands_time_out
within 90 login_succeeds
within 30 has_disks $driver 1
disk=/dev/$(first_disk $driver)
within 30 test -b "$disk"
if [[ -n ${command_timeout:-} ]]; then
    echo "$command_timeout" >"/sys/block/${disk#/dev/}/device/timeout"
fi
# ib_iser fails commands by itself as a connection ends. fio goes on, and compares what was written.
task_init='iscsi_iser_task_init: Failed to init task'
[[ -z ${rdma:-} ]] || continue_on_error=io
is_struck
[[ -z ${lost:-} ]] || frames_were_lost
[[ -z ${logged:-} ]] || was_logged "$logged"
[[ -z ${counted:-} ]] || was_counted "$counted"
sg_sync "$disk"
say logout
"${node[@]}" --logout
# The kernel's iSER tells of each queue pair that fails, of a server that is away, and of a
# connection that ends in its login.
told=
[[ -z ${rdma:-} ]] ||
    told="|iser: iser_(qp_event_callback|err_comp|route_handler|disconnected_handler):|$task_init|I/O error, dev"
io_errors_are_explained_by "$task_init"
log_is_clean "ping timeout|conn error|Capacity data has changed|Login/Text in progress$told"
