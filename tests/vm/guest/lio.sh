# LIO as a target of iSCSI at `own`, for `initiator`, as `auth` and further words say.
. /vm/target.sh

group=$config/iscsi/$target/tpgt_1
acl=$group/acls/$initiator

begins() {
    ip addr replace "$own/24" dev eth0
    ip link set eth0 up
    modprobe iscsi_target_mod
    if [[ -n ${rdma:-} ]]; then
        rdma_is_up
        # LIO forgets the length of a Login Response after it has been sent
        # (`iscsi_target_do_tx_login_io`). On two processors that may be the length of the next one, or
        # memory that is another's by then.
        has_one_processor
    fi
    log_begins
    unit_begins
    mkdir -p "$group/lun/lun_0" "$group/np"
    portal_begins
    ln -s "$backstore" "$group/lun/lun_0/disk"
    mkdir -p "$acl/lun_0"
    ln -s "$group/lun/lun_0" "$acl/lun_0/map"
    case $auth in
    none)
        echo 0 >"$group/attrib/authentication"
        echo 0 >"$config/iscsi/discovery_auth/enforce_discovery_auth"
        ;;
    *)
        echo 1 >"$group/attrib/authentication"
        echo -n "$user" >"$acl/auth/userid"
        echo -n "$secret" >"$acl/auth/password"
        echo -n "$user" >"$config/iscsi/discovery_auth/userid"
        echo -n "$secret" >"$config/iscsi/discovery_auth/password"
        echo 1 >"$config/iscsi/discovery_auth/enforce_discovery_auth"
        ;;
    esac
    if [[ $auth == mutual ]]; then
        echo -n "$mutual_user" >"$acl/auth/userid_mutual"
        echo -n "$mutual_secret" >"$acl/auth/password_mutual"
    fi
    echo "$digests" >"$group/param/HeaderDigest"
    echo "$digests" >"$group/param/DataDigest"
    echo "$immediate_data" >"$group/param/ImmediateData"
    echo "$initial_r2t" >"$group/param/InitialR2T"
    echo "$max_burst" >"$group/param/MaxBurstLength"
    echo "$first_burst" >"$group/param/FirstBurstLength"
    echo 1 >"$group/enable"
}

# A portal of LIO listens for TCP in any case, where siw is to listen next: that listener is made
# in a network of its own, where it disturbs no one. rxe has ports of its own.
portal_begins() {
    local portal=$group/np/$own:3260
    if [[ ${rdma:-} == siw ]]; then
        unshare -n sh -euc 'ip addr add "$1/32" dev lo; ip link set lo up; mkdir "$2"' \
            sh "$own" "$portal"
    else
        mkdir "$portal"
    fi
    if [[ -n ${rdma:-} ]]; then
        modprobe ib_isert
        echo 1 >"$portal/iser"
    fi
}

ends() {
    grep -H . "$acl/info"
    grep -q 'No active iSCSI Session' "$acl/info"
    echo 0 >"$group/enable"
    rm "$acl/lun_0/map"
    rmdir "$acl/lun_0" "$acl"
    rm "$group/lun/lun_0/disk"
    rmdir "$group/lun/lun_0" "$group/np/$own:3260" "$group" "$config/iscsi/$target"
    unit_ends
    # GET LBA STATUS, and keys of RFC 7144 and RFC 7145, which it does not know and answers so.
    local unknown='Unsupported SA: 0x12|Unable to locate key "(TaskReporting|iSCSIProtocolLevel'
    unknown+='|MaxOutstandingUnexpectedPDUs|TaggedBufferForSolicitedDataOnly)'
    # A CRC that is wrong ends a connection, which one end says by a Terminate: our initiator, or
    # siw, where ib_isert hears of the command or the RDMA Read that has failed.
    [[ ${rdma:-} != siw || -z $expected ]] ||
        unknown+='|siw: got TERMINATE|isert: isert_(qp_event_callback:|print_wc: .* general error)'
    # It lets a command go once too often whose immediate data had a wrong digest (docs/peers.md).
    local traces=
    if [[ -z ${rdma:-} && -n $expected ]]; then
        traces='target_complete_ok_work.*iscsit_release_cmd[+]'
        traces+='|refcount_t: underflow.*iscsit_free_cmd[+]'
    fi
    log_is_clean "$unknown${expected:+|$expected}" "$traces"
}

case $action in
begin) begins ;;
grow) unit_grows ;;
end) ends ;;
esac
