# LIO with ib_isert, over siw.
rdma=siw
. /vm/lio.sh
