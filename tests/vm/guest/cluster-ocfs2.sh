# OCFS2 on its own cluster stack, o2cb: heartbeats go by the disk, locks by TCP.

cluster=/sys/kernel/config/cluster/lunar

# Seconds without a heartbeat, in units of two, after which a node is dead.
threshold=15

begins() {
    disk_begins
    hostname "node$node"
    # Where mkfs looks for what is mounted.
    ln -sf /proc/self/mounts /etc/mtab
    modprobe ocfs2
    modprobe ocfs2_stack_o2cb
    mkdir -p /etc/ocfs2
    cat >/etc/ocfs2/cluster.conf <<CONF
cluster:
	node_count = 2
	name = lunar

node:
	ip_port = 7777
	ip_address = ${nodes[0]}
	number = 0
	name = node1
	cluster = lunar

node:
	ip_port = 7777
	ip_address = ${nodes[1]}
	number = 1
	name = node2
	cluster = lunar
CONF
}

joins() {
    echo o2cb >/sys/fs/ocfs2/cluster_stack
    o2cb register-cluster lunar
    echo "$threshold" >"$cluster/heartbeat/dead_threshold"
    grep -H . "$cluster"/node/*/{num,ipv4_address,local}
}

makes() {
    mkfs.ocfs2 -N 2 -J size=4M -b 4K -C 4K --cluster-stack=o2cb --cluster-name=lunar -F "$disk"
}

is_alone() { mounted.ocfs2 -f "$disk"; }

ends() {
    o2cb unregister-cluster lunar
    fsck.ocfs2 -f -n "$disk"
    disk_ends
    # The nodes of a domain are printed one by one.
    local nodes='\] (\( |[0-9] |\) [0-9] nodes)'
    local lost='dlm_[a-z_]+:[0-9]+ ERROR: (link to 1 went down|node down|status = -(11|107|112)$)'
    lost+='|dlm_[a-z_]+:[0-9]+ ERROR: .*[Ee]rror -112 .*to node 1$'
    lost+=${expected:+|$expected}
    log_is_clean "o2(net|dlm|cb|hb): |ocfs2: |JBD2: Ignoring recovery|$nodes|$lost"
}
