//! Each view, whole. The texts are those of the original, with what [`view`](crate::view) differs
//! in.

use std::slice::from_ref;

use super::tree::{PCI_IDS, Tree};
use crate::instance::{Instance, InstanceError};
use crate::view::adapter::adapters;
use crate::view::fcf::fcfs;
use crate::view::statistics::RowTable;
use crate::view::target::{UnitStyle, targets};

fn of(tree: &Tree, interface: &str) -> Vec<Instance> {
    vec![Instance::of(&tree.sysfs(), interface).unwrap()]
}

fn interfaces(instances: &[Instance]) -> Vec<&str> {
    instances.iter().map(|one| &*one.interface).collect()
}

#[test]
fn all_instances_or_one() {
    let tree = Tree::new();
    let sysfs = tree.sysfs();
    let all = Instance::chosen(&sysfs, None).unwrap();
    assert_eq!(interfaces(&all), ["eth3.152-fcoe", "veth0"]);
    let one = Instance::chosen(&sysfs, Some("veth0")).unwrap();
    assert_eq!(interfaces(&one), ["veth0"]);
}

#[test]
fn interfaces_without_an_instance_are_told_by_what_they_lack() {
    let tree = Tree::new();
    let why = |name: &str| Instance::of(&tree.sysfs(), name).unwrap_err();
    assert_eq!(why("lo"), InstanceError::NoInstance("lo".into()));
    for name in ["eth9", "", "..", "../net/lo", "."] {
        assert_eq!(why(name), InstanceError::NoInterface(name.into()));
    }
    let none = Instance::chosen(&Tree::bare().sysfs(), None).unwrap_err();
    assert_eq!(none, InstanceError::NoneAtAll);
}

#[test]
fn an_adapter_with_its_port_and_one_by_npiv() {
    let tree = Tree::new();
    let view = adapters(&tree.sysfs(), &of(&tree, "eth3.152-fcoe"), PCI_IDS);
    let expected = "    Description:      82599ES 10-Gigabit SFI/SFP+ Network Connection
    Revision:         01
    Manufacturer:     Intel Corporation
    Serial Number:    001B215A0985
    Driver:           ixgbe 5.1.0-k
    Number of Ports:  1

        Symbolic Name:     fcoe v0.1 over eth3.152-fcoe
        OS Device Name:    host9
        Node Name:         0x1000001b2190985a
        Port Name:         0x2000001b2190985a
        Fabric Name:       0x2098000dec6d8f01
        Speed:             10 Gbit
        Supported Speed:   1 Gbit, 10 Gbit
        MaxFrameSize:      2048 bytes
        FC-ID (Port ID):   0x270027
        State:             Online

        Symbolic Name:     fcoe v0.1 over eth3.152-fcoe
        OS Device Name:    host10
        Node Name:         0x1000001b2190985b
        Port Name:         0x2000001b2190985b
        Fabric Name:       0x2098000dec6d8f01
        Speed:             10 Gbit
        Supported Speed:   1 Gbit, 10 Gbit
        MaxFrameSize:      2048 bytes
        FC-ID (Port ID):   0x270030
        State:             Online
";
    assert_eq!(view, expected);
}

/// veth has no card, and pci.ids may be missing.
#[test]
fn what_is_not_known_of_an_adapter_is_said_so() {
    let tree = Tree::new();
    let view = adapters(&tree.sysfs(), &of(&tree, "veth0"), PCI_IDS);
    let head = "    Description:      Unknown
    Revision:         Unknown
    Manufacturer:     Unknown
    Serial Number:    Unknown
    Driver:           Unknown Unknown
";
    assert!(view.starts_with(head), "{view}");
    let nameless = adapters(&tree.sysfs(), &of(&tree, "eth3.152-fcoe"), "");
    let head = "    Description:      Unknown\n    Revision:         01\n";
    assert!(nameless.starts_with(head), "{nameless}");
}

/// A capability that points at itself, and one that points below the extended space.
#[test]
fn a_chain_of_capabilities_that_does_not_end_is_left() {
    for header in [[0x04, 0, 0x01, 0x10], [0x04, 0, 0x01, 0x08]] {
        let tree = Tree::new();
        let mut config = vec![0; 4096];
        config[0x100..0x104].copy_from_slice(&header);
        let path = tree.path("devices/pci0000:00/0000:00:03.0/config");
        std::fs::write(path, config).unwrap();
        let view = adapters(&tree.sysfs(), &of(&tree, "eth3.152-fcoe"), PCI_IDS);
        assert!(view.contains("Serial Number:    Unknown\n"), "{view}");
    }
}

#[test]
fn targets_with_a_table_of_their_disks() {
    let tree = Tree::new();
    let view = targets(&of(&tree, "eth3.152-fcoe"), UnitStyle::Table);
    let expected = "    Interface:        eth3.152-fcoe
    Roles:            FCP Target
    Node Name:        0x50060160bb202280
    Port Name:        0x500601623b202280
    Target ID:        0
    MaxFrameSize:     2048 bytes
    OS Device Name:   rport-9:0-0
    FC-ID (Port ID):  0x2701ef
    State:            Online

    LUN ID  Device Name   Capacity   Block Size  Description
    ------  -----------  ----------  ----------  ----------------------------
         0  sdb            8.00 GiB      512     DGC RAID 5 (rev 0430)
         1  sdc            3.91 TiB      512     DGC RAID 5 (rev 0430)
        10  sdd            1.00 GiB     4096     DGC RAID 5 (rev 0430)

    Interface:        eth3.152-fcoe
    Roles:            FCP Target, FCP Initiator
    Node Name:        0x50060160bb202280
    Port Name:        0x20000000c9aabbcd
    Target ID:        1
    MaxFrameSize:     2048 bytes
    OS Device Name:   rport-9:0-2
    FC-ID (Port ID):  0x270029
    State:            Online

    LUN ID  Device Name   Capacity   Block Size  Description
    ------  -----------  ----------  ----------  ----------------------------

";
    assert_eq!(view, expected);
}

#[test]
fn disks_with_all_that_is_known_of_them() {
    let tree = Tree::new();
    let view = targets(&of(&tree, "eth3.152-fcoe"), UnitStyle::Full);
    let (_, units) = view.split_once("\n\n").unwrap();
    let expected = "    LUN #0 Information:
        OS Device Name:     sdb
        Description:        DGC RAID 5 (rev 0430)
        Ethernet Port FCID: 0x270027
        Target FCID:        0x2701ef
        Target ID:          0
        LUN ID:             0
        Capacity:           8.00 GiB
        Capacity in Blocks: 16777216
        Block Size:         512 bytes
        Status:             Attached

    LUN #1 Information:
";
    assert!(units.starts_with(expected), "{view}");
    let blocks = "        Capacity in Blocks: 262144\n        Block Size:         4096 bytes\n";
    assert!(units.contains(blocks), "{view}");
}

/// Disks stay for a while when the link is down, and cannot be used.
#[test]
fn a_port_that_is_not_online_shows_targets_without_disks() {
    let tree = Tree::new();
    let view = targets(&of(&tree, "veth0"), UnitStyle::Table);
    assert!(view.contains("    Interface:        veth0\n"), "{view}");
    assert!(!view.contains("sde") && !view.contains("LUN ID"), "{view}");
}

#[test]
fn forwarders_of_an_instance() {
    let tree = Tree::new();
    let expected = "    Interface:        eth3.152-fcoe
    Connection Type:  Fabric

    FCF #0 Information
        Connection Mode:  Connected
        Fabric Name:      0x2098000dec6d8f01
        Switch Name:      0x2001000dec6d8f00
        MAC Address:      00:0D:EC:6D:8F:00
        FCF Priority:     128
        FKA Period:       8 seconds
        Selected:         Yes
        VLAN ID:          152

    Interface:        veth0
    Connection Type:  VN2VN
";
    assert_eq!(fcfs(&Instance::all(&tree.sysfs())), expected);
}

#[test]
fn frames_and_requests_in_rows() {
    let tree = Tree::new();
    let instance = &of(&tree, "eth3.152-fcoe")[0];
    let head = [
        "",
        "eth3.152-fcoe   interval: 1                             Err  Inv  IvTx Link Cntl ",
        "Seconds TxFrames  TxBytes      RxFrames  RxBytes        Frms CRC  Byte Fail Reqs ",
        "------- --------- ------------ --------- -------------- ---- ---- ---- ---- ---- ",
        "0       6940      2614088      7982      4449096        1    2    12   4    17   ",
        "20      6940      2614088      7982      4449096        1    2    12   4    17   ",
    ];
    let tail = [
        "",
        "Input     Input     Output    Output",
        "Requests  MBytes    Requests  MBytes",
        "--------- --------- --------- ---------",
        "1000      7         666       5",
        "1000      7         666       5",
    ];
    let expected: Vec<_> = head
        .iter()
        .zip(tail)
        .map(|(head, tail)| format!("{head}{tail}"))
        .collect();
    let (table, mut since) = (RowTable::Port, None);
    let mut view = table.header("eth3.152-fcoe", 1);
    view += &table.row(from_ref(instance), &mut since);
    let statistics = "class/fc_host/host9/statistics";
    tree.put(&format!("{statistics}/seconds_since_last_reset"), "0x78");
    view += &table.row(from_ref(instance), &mut since);
    assert_eq!(view.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn link_errors_in_rows() {
    let tree = Tree::new();
    let table = RowTable::LinkErrors;
    let view = table.header("veth0", 10) + &table.row(&of(&tree, "veth0")[..1], &mut None);
    let expected = "
veth0           interval: 10
LinkFail VLinkFail MissFKA SymbErr ErrBlkCnt FCSErrCnt
-------- --------- ------- ------- --------- ---------
7        14        21      28      35        42
";
    assert_eq!(view, expected);
}

/// What a unit says of itself reaches sysfs as it is.
#[test]
fn control_characters_of_a_unit_do_not_reach_the_terminal() {
    let tree = Tree::new();
    let unit = "class/net/eth3.152-fcoe/ctlr_0/host9/rport-9:0-0/target9:0:0/9:0:0:0";
    tree.put(&format!("{unit}/vendor"), "\u{1b}[2JEVIL");
    let view = targets(&of(&tree, "eth3.152-fcoe"), UnitStyle::Table);
    assert!(
        view.contains("?[2JEVIL RAID 5") && !view.contains('\u{1b}'),
        "{view}"
    );
}
