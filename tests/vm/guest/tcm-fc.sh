# The kernel's target of Fibre Channel (tcm_fc) behind its fcoe, without a switch (VN2VN) or behind
# one (`create=create`). `initiator` is one of those that may log in, or several, with commas.
. /vm/target.sh
. /vm/ethernet.sh

group=$config/fc/$target/tpgt_1
initiators=${initiator//,/ }

# It has to have its group and its access list before its port comes up.
begins() {
    ethernet_is_up
    modprobe tcm_fc
    log_begins
    unit_begins
    mkdir -p "$group/lun/lun_0"
    ln -s "$backstore" "$group/lun/lun_0/disk"
    local name
    for name in $initiators; do
        mkdir -p "$group/acls/$name/lun_0"
        ln -s "$group/lun/lun_0" "$group/acls/$name/lun_0/map"
    done
    port_begins
}

ends() {
    grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name} || true
    port_ends
    local name
    for name in $initiators; do
        rm "$group/acls/$name/lun_0/map"
        rmdir "$group/acls/$name/lun_0" "$group/acls/$name"
    done
    rm "$group/lun/lun_0/disk"
    rmdir "$group/lun/lun_0" "$group" "$config/fc/$target"
    unit_ends
    # GET LBA STATUS.
    log_is_clean "Unsupported SA: 0x12"
}

case $action in
begin) begins ;;
grow) unit_grows ;;
end) ends ;;
esac
