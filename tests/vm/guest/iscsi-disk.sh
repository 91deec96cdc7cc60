# A disk of iSCSI, for scripts that do not care what brings it.
. /vm/open-iscsi-lib.sh

driver=iscsi_tcp
expected=

disk_begins() { is_logged_in; }
disk_ends() { is_logged_out; }
