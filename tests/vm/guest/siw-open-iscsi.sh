# open-iscsi with the kernel's ib_iser, over siw.
rdma=siw
# Of Linux 6.1, ib_iser fails a command itself that comes while a damaged connection goes away
# ("iscsi_iser_task_init: Failed to init task, err = -19"). With one at a time none comes.
[[ $variation != damaged ]] || depth=1
. /vm/open-iscsi.sh
