# The same as over TCP, with the kernel's ib_iser over rxe, at `lunar` beside it.
. /vm/served-here.sh
disk_is_made
. /vm/faults-iscsi.sh
server_ends
