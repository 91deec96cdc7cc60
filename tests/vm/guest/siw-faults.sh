# The same as over TCP, with the kernel's ib_iser over siw.
rdma=siw
. /vm/faults-iscsi.sh
