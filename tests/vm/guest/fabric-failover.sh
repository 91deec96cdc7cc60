# A disk behind a switch that ends while fio writes and compares: `strike` is `kill` or `term` of
# the active one of two switches, whose place the other one takes, or `restart` of the only one.
. /vm/fabric-lib.sh
. /vm/faults-lib.sh

# Little, so that nothing waits but for the switch.
small=1M large=4M large_bytes=64k large_rate=2M

port_id() { cat "/sys/class/fc_host/$(host)/port_id"; }

ask switches
ask "serve 0"
port_is_up
took online 20 host_is_online
disk_is_found 60 30
for port in /sys/class/fc_remote_ports/rport*; do
    echo 120 >"$port/dev_loss_tmo"
done
before=$(port_id)
load_begins
fio_goes_on
ask load
for _ in {1..10}; do
    ask "$strike"
    fio_goes_on
    [[ $(port_id) == "$before" ]] || fail "it was $before, and is $(port_id) now"
    ask revive
    # An FCF that ends each login within 10 s is tried again later and later.
    sleep 11
done
ask loaded
load_ends
statistics=/sys/class/fc_host/$(host)/statistics
grep -H . "$statistics"/{fcp_packet_aborts,error_frames,link_failure_count}
say logout
disk_is_gone 20
log_is_clean "${expected:-}"
