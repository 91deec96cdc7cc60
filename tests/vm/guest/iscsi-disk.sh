# A disk of iSCSI, for scripts that work on any transport.
. /vm/open-iscsi-lib.sh

driver=iscsi_tcp
expected=

disk_begins() { is_logged_in; }
disk_ends() { is_logged_out; }
