//! A folder that is laid out like the sysfs of Linux 6.1: an Ethernet card with a VLAN on which a
//! fabric is, and an interface without a card in VN2VN.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::sysfs::SysfsDir;

/// The card, and the interfaces that have an instance.
const CARD: &str = "devices/pci0000:00/0000:00:03.0";
const VLAN: &str = "devices/virtual/net/eth3.152-fcoe";
const VETH: &str = "devices/virtual/net/veth0";

/// Names and numbers of vendors and devices of PCI.
pub(super) const PCI_IDS: &str = "\
# A list of some.
8085  Another
\t10fb  Not this one
8086  Intel Corporation
\t10fa  Nor this one
\t10fb  82599ES 10-Gigabit SFI/SFP+ Network Connection
\t\t8086 0002  Ethernet Server Adapter
";

pub(super) struct Tree {
    folder: TempDir,
}

impl Tree {
    /// Only interfaces, without FCoE.
    pub(super) fn bare() -> Self {
        let folder = TempDir::new().unwrap();
        let tree = Self { folder };
        tree.card();
        tree.interface(VLAN, "eth3.152-fcoe");
        tree.link(&format!("{VLAN}/lower_eth3"), &format!("{CARD}/net/eth3"));
        tree.interface(VETH, "veth0");
        tree.interface("devices/virtual/net/lo", "lo");
        tree
    }

    /// With libfcoe, and an instance on each of two interfaces.
    pub(super) fn new() -> Self {
        let tree = Self::bare();
        tree.bus();
        tree.fabric();
        tree.vn2vn();
        tree
    }

    pub(super) fn sysfs(&self) -> SysfsDir {
        SysfsDir::root(self.folder.path())
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// What was written to an attribute.
    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Attributes of a folder, one a line: name, then value.
    fn attributes(&self, dir: &str, lines: &str) {
        for line in lines.lines() {
            let (name, value) = line.trim().split_once(' ').unwrap();
            self.put(&format!("{dir}/{name}"), value);
        }
    }

    /// As sysfs links, by a relative path, from the folder of the link.
    fn link(&self, link: &str, to: &str) {
        let link_path = self.path(link);
        fs::create_dir_all(link_path.parent().unwrap()).unwrap();
        let up = "../".repeat(Path::new(link).components().count() - 1);
        symlink(format!("{up}{to}"), link_path).unwrap();
    }

    fn interface(&self, dir: &str, name: &str) {
        fs::create_dir_all(self.path(dir)).unwrap();
        self.link(&format!("class/net/{name}"), dir);
    }

    fn card(&self) {
        self.attributes(CARD, "vendor 0x8086\ndevice 0x10fb");
        fs::write(self.path(&format!("{CARD}/config")), config()).unwrap();
        self.put("module/ixgbe/version", "5.1.0-k");
        self.link("bus/pci/drivers/ixgbe/module", "module/ixgbe");
        self.link(&format!("{CARD}/driver"), "bus/pci/drivers/ixgbe");
        self.interface(&format!("{CARD}/net/eth3"), "eth3");
        self.link(&format!("{CARD}/net/eth3/device"), CARD);
    }

    pub(super) fn bus(&self) {
        self.put("bus/fcoe/ctlr_create", "");
        self.put("bus/fcoe/ctlr_destroy", "");
    }

    /// An instance without FCFs, on an interface.
    fn instance(&self, interface: &str, number: u32, mode: &str) -> String {
        let dir = format!("{interface}/ctlr_{number}");
        self.attributes(&dir, &format!("mode {mode}\nenabled 1"));
        self.attributes(
            &format!("{dir}/lesb"),
            "link_fail 7\nvlink_fail 14\nmiss_fka 21\nsymb_err 28\nerr_block 35\nfcs_error 42",
        );
        self.link(&format!("bus/fcoe/devices/ctlr_{number}"), &dir);
        dir
    }

    fn fabric(&self) {
        let dir = self.instance(VLAN, 0, "Fabric");
        self.attributes(
            &format!("{dir}/fcf_0"),
            "state Connected\nfabric_name 0x2098000dec6d8f01\nswitch_name 0x2001000dec6d8f00
            mac 00:0d:ec:6d:8f:00\npriority 128\nfka_period 8\nselected 1\nvlan_id 152",
        );
        let host = format!("{dir}/host9");
        self.host(
            &host,
            0x001b_2190_985a,
            "0x270027",
            "Online",
            "eth3.152-fcoe",
        );
        self.put(&format!("{host}/scsi_host/host9/scan"), "");
        self.remote(&host, 0, "FCP Target", "0x500601623b202280 0x2701ef 0");
        let unit = format!("{host}/rport-9:0-0/target9:0:0/9:0:0:");
        self.disk(&format!("{unit}0"), "sdb 16777216 512");
        self.disk(&format!("{unit}1"), "sdc 8388608000 512");
        self.disk(&format!("{unit}10"), "sdd 2097152 4096");
        self.remote(&host, 1, "FCP Initiator", "0x20000000c9aabbcc 0x270028 -1");
        let both = "FCP Target, FCP Initiator";
        self.remote(&host, 2, both, "0x20000000c9aabbcd 0x270029 1");
        let vport = format!("{host}/vport-9:0-0/host10");
        self.host(
            &vport,
            0x001b_2190_985b,
            "0x270030",
            "Online",
            "eth3.152-fcoe",
        );
    }

    fn vn2vn(&self) {
        let host = format!("{}/host11", self.instance(VETH, 1, "VN2VN"));
        self.host(&host, 0x5254_0012_3456, "0x003456", "Linkdown", "veth0");
        self.remote(&host, 0, "FCP Target", "0x2000525400654321 0x004321 0");
        self.disk(
            &format!("{host}/rport-11:0-0/target11:0:0/11:0:0:0"),
            "sde 2048 512",
        );
    }

    /// A local port whose names are made of a MAC address.
    fn host(&self, dir: &str, mac: u64, fc_id: &str, state: &str, interface: &str) {
        let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
        let port = format!("{dir}/fc_host/{name}");
        self.attributes(
            &port,
            &format!(
                "symbolic_name fcoe v0.1 over {interface}\nnode_name 0x1000{mac:012x}
                port_name 0x2000{mac:012x}\nfabric_name 0x2098000dec6d8f01\nport_id {fc_id}
                port_state {state}\nspeed 10 Gbit\nsupported_speeds 1 Gbit, 10 Gbit
                maxframe_size 2048 bytes\nissue_lip 0"
            ),
        );
        self.attributes(
            &format!("{port}/statistics"),
            "seconds_since_last_reset 0x64\ntx_frames 0x1b1c\ntx_words 0x9f8d2\nrx_frames 0x1f2e
            rx_words 0x10f8d2\nerror_frames 0x1\ninvalid_crc_count 0x2\ninvalid_tx_word_count 0x3
            link_failure_count 0x4\nfcp_control_requests 0x11\nfcp_input_requests 0x3e8
            fcp_input_megabytes 0x7\nfcp_output_requests 0x29a\nfcp_output_megabytes 0x5",
        );
        self.link(&format!("class/fc_host/{name}"), &port);
    }

    /// A remote port of number `number`, with WWPN, FC-ID and target ID.
    fn remote(&self, host: &str, number: u32, roles: &str, told: &str) {
        let local = host.rsplit("host").next().unwrap();
        let name = format!("rport-{local}:0-{number}");
        let dir = format!("{host}/{name}/fc_remote_ports/{name}");
        let [wwpn, fc_id, target] = told.split(' ').collect::<Vec<_>>().try_into().unwrap();
        self.attributes(
            &dir,
            &format!(
                "node_name 0x50060160bb202280\nport_name {wwpn}\nport_id {fc_id}
                scsi_target_id {target}\nmaxframe_size 2048 bytes\nport_state Online
                roles {roles}"
            ),
        );
        self.link(&format!("class/fc_remote_ports/{name}"), &dir);
    }

    /// A disk, with its name, sectors and bytes of a block.
    fn disk(&self, dir: &str, told: &str) {
        let [name, sectors, block] = told.split(' ').collect::<Vec<_>>().try_into().unwrap();
        self.attributes(dir, "vendor DGC     \nmodel RAID 5          \nrev 0430");
        self.put(&format!("{dir}/block/{name}/size"), sectors);
        self.put(&format!("{dir}/block/{name}/queue/hw_sector_size"), block);
    }
}

/// The configuration space of the card: revision 1; at 100h the capability of its serial number.
fn config() -> Vec<u8> {
    let mut config = vec![0; 4096];
    config[8] = 1;
    config[0x100..0x10c].copy_from_slice(&[
        0x03, 0, 0x01, 0, 0x85, 0x09, 0x5a, 0xff, 0xff, 0x21, 0x1b, 0x00,
    ]);
    config
}
