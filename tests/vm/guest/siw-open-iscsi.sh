# open-iscsi with the kernel's ib_iser, over siw.
rdma=siw
. /vm/open-iscsi.sh
