//! `lunar unit`: the systemd unit of the daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::{VerbError, documents};

/// Print the systemd unit of the daemon
///
/// For an installation by hand: lunar unit > /etc/systemd/system/lunar.service
#[derive(Debug, Args)]
pub(crate) struct UnitFileArgs {
    /// Where lunar is installed
    #[arg(long, value_name = "PATH", default_value = "/usr/bin/lunar")]
    binary: PathBuf,
}

pub(crate) fn run(args: &UnitFileArgs) -> Result<ExitCode, VerbError> {
    let binary = args.binary.display().to_string();
    documents::print(UNIT.replace("BINARY", &binary).as_bytes())
}

/// What the daemon may do stands here and not in the program: volumes may come from anywhere at the
/// next change. `ProcSubset=pid` would hide `/proc/meminfo`, by which the memory limit goes. By
/// `setpriority` the control plane gives way to I/O. By CAP_BPF and `bpf` the kernel is asked to
/// hand each core the frames of its own initiators; what XDP takes besides, CAP_NET_ADMIN and
/// CAP_PERFMON, is left to a drop-in, as it opens the network and the memory of the whole machine.
const UNIT: &str = "\
[Unit]
Description=Lunar storage area network
Documentation=man:lunar-daemon(1)
Wants=network-online.target
After=network-online.target local-fs.target

[Service]
Type=notify
ExecStartPre=+/usr/bin/install -d -m 0750 -o lunar -g lunar /etc/lunar
ExecStart=BINARY daemon --socket /run/lunar/control.sock
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
WatchdogSec=30
TimeoutStopSec=60
LimitNOFILE=1048576

User=lunar
Group=lunar
StateDirectory=lunar
StateDirectoryMode=0750
RuntimeDirectory=lunar
ConfigurationDirectory=lunar
ReadWritePaths=-/etc/lunar -/srv
AmbientCapabilities=CAP_NET_RAW CAP_IPC_LOCK CAP_BPF
CapabilityBoundingSet=CAP_NET_RAW CAP_IPC_LOCK CAP_BPF

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
DevicePolicy=closed
DeviceAllow=block-* rw
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
UMask=0077
SystemCallArchitectures=native
SystemCallFilter=@system-service io_uring_setup io_uring_enter io_uring_register
SystemCallFilter=~@privileged @resources
SystemCallFilter=setpriority sched_setaffinity bpf
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
";

#[cfg(test)]
mod tests;
