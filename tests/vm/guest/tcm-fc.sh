# The kernel's target of Fibre Channel (tcm_fc) behind its fcoe, without a switch (VN2VN).
. /vm/target.sh
. /vm/ethernet.sh

group=$config/fc/$target/tpgt_1
acl=$group/acls/$initiator

# It has to have its group and its access list before its port comes up.
begins() {
    ethernet_is_up
    modprobe tcm_fc
    log_begins
    unit_begins
    mkdir -p "$group/lun/lun_0"
    ln -s "$backstore" "$group/lun/lun_0/disk"
    mkdir -p "$acl/lun_0"
    ln -s "$group/lun/lun_0" "$acl/lun_0/map"
    port_begins
}

ends() {
    grep -H . /sys/class/fc_remote_ports/rport*/{port_id,roles,port_state,port_name} || true
    port_ends
    rm "$acl/lun_0/map"
    rmdir "$acl/lun_0" "$acl"
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
