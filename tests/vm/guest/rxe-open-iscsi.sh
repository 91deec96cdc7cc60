# open-iscsi with the kernel's ib_iser over rxe, at `lunar` beside it.
. /vm/served-here.sh
. /vm/open-iscsi-lib.sh

network_is_up
disk_is_made
serve
. /vm/open-iscsi.sh
server_ends
