//! LLDP and DCBX as others judge them: lldpd sends TLVs that `lunar dcb` has to show, lldptool
//! names those of `lunar switch`, and `dcb` of iproute2 asks the kernel what `lunar` asks.
//!
//! These need root, without which they are told as not run: lldpd and lldpad give up privileges
//! that the root of a user namespace cannot give up.

use std::fs;
use std::process::Command;

use tests::{server, tool};

use crate::{LIMIT, says};

/// What a script in namespaces of its own prints, in which `$0` is `lunar`. All that it starts ends
/// with it. `None` without root.
fn judged_by(tools: &[&str], script: &str) -> Option<String> {
    tool::present(tools).unwrap();
    if !is_root() {
        tool::not_run("judges of LLDP and DCBX: they need root");
        return None;
    }
    let both = [PAIR, script].concat();
    let lunar = server::binary().unwrap();
    let mut command = in_namespaces();
    command.args(["bash", "-euc", &both]).arg(lunar);
    let ran = tool::run(&mut command, LIMIT).unwrap();
    assert!(ran.good(), "{:?}: {}", ran.status, ran.output);
    Some(ran.output)
}

fn in_namespaces() -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    unshare
}

/// Whether this user may do all that root may. The root that `unshare --map-root-user` makes is the
/// only user of its namespace.
fn is_root() -> bool {
    let users = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let has_others = users.split_whitespace().nth(2) != Some("1");
    has_others && tool::must(in_namespaces().arg("true")).is_ok()
}

/// `ours` is where `lunar` is, and `theirs` is where the others are. lldpad keeps its process id in
/// shared memory, and would take any process of that number for itself.
const PAIR: &str = "
    mount -t tmpfs run /run
    mount -t tmpfs shm /dev/shm
    ip link add ours mtu 2500 up type veth peer name theirs mtu 2500
    ip link set theirs up
    ip link set lo up
";

/// Has lldpd send this TLV, `OUI SUBTYPE INFO`: `action` is to add or replace it. Once such a
/// script did not end within a minute, and nothing told whether lldpcli or `lunar` was to blame:
/// now lldpcli is named when it is.
fn tlv(action: &str, tlv: &str) -> String {
    let [oui, subtype, info] = tlv.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{tlv}")
    };
    let tlv = format!("custom-tlv {action} oui {oui} subtype {subtype} oui-info {info}");
    format!(
        "until timeout 10 lldpcli -u /run/lldpd.socket configure lldp {tlv}
        do echo lldpcli: no answer; sleep 1; done\n"
    )
}

/// lldpd, which sends each second.
const LLDPD: &str = "
    mkdir /run/lldpd /run/empty
    lldpd -d -I theirs -u /run/lldpd.socket -O /run/empty >/run/lldpd.log 2>&1 &
    until lldpcli -u /run/lldpd.socket show configuration; do sleep 0.1; done >&- 2>&-
    lldpcli -u /run/lldpd.socket configure lldp tx-interval 1
";

/// lldpd sends `TLVS`, and lldpad listens beside it: DCBX is between two.
fn neighbours(tlvs: &[&str]) -> String {
    let configured: String = tlvs.iter().map(|told| tlv("add", told)).collect();
    format!(
        "touch /run/lldpad.conf
        lldpad -f /run/lldpad.conf -p >/run/lldpad.log 2>&1 &
        {LLDPD}
        until lldptool set-lldp -i theirs adminStatus=rx; do sleep 0.1; done >&- 2>&-
        {configured}
        \"$0\" switch ours --open >/run/ready 2>/run/switch.log &
        \"$0\" dcb ours --seconds 4
        lldptool -t -n -i theirs
        cat /run/switch.log"
    )
}

const TOOLS: [&str; 5] = ["ip", "lldpad", "lldpcli", "lldpd", "lldptool"];

#[test]
fn tlvs_of_ieee_are_shown_and_named() {
    let script = neighbours(&[
        // ETS: not willing, 3 classes; priority 3 has class 1, which has 60 % of the bandwidth.
        "00,80,c2 9 03,00,01,00,00,28,3c,00,00,00,00,00,00,02,02,00,00,00,00,00,00",
        "00,80,c2 10 00,00,01,00,00,28,3c,00,00,00,00,00,00,02,02,00,00,00,00,00,00",
        // PFC: willing, 8 classes, of priorities 3 and 4.
        "00,80,c2 11 88,18",
        // Protocols by EtherType and by port of TCP.
        "00,80,c2 12 00,61,89,06,61,89,14,82,0c,bc",
    ]);
    let Some(output) = judged_by(&TOOLS, &script) else {
        return;
    };
    let shown = [
        "    PFC Willing             yes
    PFC Capable Classes     8
    PFC Enabled             3 4
    ETS Willing             no
    Max Classes             3
    ETS
      Priority to Class     0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0
      Class Bandwidth       40% 60% 0% 0% 0% 0% 0% 0%
      Class Selection       0:ets 1:ets 2:strict",
        "    ETS Recommendation
      Priority to Class     0:0 1:0 2:0 3:1 ",
        "    Application             EtherType 8906h (FCoE), priority 3",
        "    Application             EtherType 8914h (FIP), priority 3",
    ];
    says(&output, &shown);
    let named = [
        "port ours of a Fibre Channel switch",
        "IEEE 8021QAZ ETS Configuration TLV\n\t Willing: no",
        "\t PRIO_MAP: 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 \n\t TC Bandwidth: 50% 50% 0% ",
        "IEEE 8021QAZ ETS Recommendation TLV\n\t PRIO_MAP:  0:0 1:0 2:0 3:1 ",
        "IEEE 8021QAZ PFC TLV\n\t Willing: no\n\t MACsec Bypass Capable: no\n\t PFC capable \
         traffic classes: 8\n\t PFC enabled: 3 ",
        "App#   0 \t Prio 3 \t Sel 1 \t P-ID\t Ethertype: 0x8906",
        "App#   1 \t Prio 3 \t Sel 1 \t P-ID\t Ethertype: 0x8914",
        "FCoE has priority 3 with PFC at both ends",
    ];
    says(&output, &named);
    assert!(!output.contains("Unidentified"), "{output}");
}

/// The switch answers in this dialect where a neighbor speaks it alone.
#[test]
fn tlvs_of_cee_are_shown_and_named() {
    let tlvs = [
        // Control: operating and maximum version 0, SeqNo 7, AckNo 5.
        "02,0a,00,00,00,00,00,07,00,00,00,05",
        // Priority groups: enabled, willing; priority 3 is in group 1, which has 60 %.
        "04,11,00,00,c0,00,00,01,00,00,28,3c,00,00,00,00,00,00,08",
        // PFC: enabled, with an error.
        "06,06,00,00,a0,00,08,08",
        // Protocols: enabled, by EtherType.
        "08,10,00,00,80,00,89,06,00,1b,21,08,89,14,00,1b,21,08",
    ];
    let script = neighbours(&[&format!("00,1b,21 2 {}", tlvs.join(","))]);
    let Some(output) = judged_by(&TOOLS, &script) else {
        return;
    };
    let shown = ["    Control                 SeqNo 7, AckNo 5
    PFC                     enabled, not willing, error
    PFC Capable Classes     8
    PFC Enabled             3
    Priority Groups         enabled, willing, no error
    Priority to Group       0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0
    Group Bandwidth         40% 60% 0% 0% 0% 0% 0% 0%
    Max Classes             8
    Applications            enabled, not willing, no error
    Application             EtherType 8906h (FCoE), priority 3
    Application             EtherType 8914h (FIP), priority 3
"];
    says(&output, &shown);
    let named = [
        "CEE DCBX TLV\n\tControl TLV:\n\t  SeqNo: 1, AckNo: 7\n",
        "\tPriority Groups TLV:\n\t  Enabled, Not Willing, No Error",
        "\t  PGID Priorities:  0:[0,1,2,4,5,6,7] 1:[3]",
        "\tPriority Flow Control TLV:\n\t  Enabled, Not Willing, ",
        "\t  PFC enabled priorities: 3",
        "\tApplication TLV:\n\t  Enabled, Not Willing, No Error\n\t  Ethertype: 0x8906, Priority \
         Map: 0x08\n\t  Ethertype: 0x8914, Priority Map: 0x08",
    ];
    says(&output, &named);
    assert!(!output.contains("Unidentified"), "{output}");
}

/// veth has no DCB, so the kernel refuses both, and for the same reason.
#[test]
fn the_kernel_is_asked_what_iproute2_asks() {
    let script = "
        asks() { strace -f -e trace=sendto,recvfrom,recvmsg -s 4096 -o /run/trace \"$@\" || true; }
        asks dcb pfc show dev ours
        grep DCB /run/trace | sed 's/^/dcb: /'
        asks \"$0\" dcb ours --seconds 1
        grep DCB /run/trace | sed 's/^/lunar: /'
    ";
    let Some(output) = judged_by(&["dcb", "ip", "strace"], script) else {
        return;
    };
    // From the flags on to the end of the message, without its number.
    let asked = |who: &str| {
        let mut lines = output.lines().filter(|line| line.starts_with(who));
        let line = lines.find(|line| line.contains("sendto(")).unwrap();
        let (_, message) = line.split_once("nlmsg_type=").unwrap();
        let (message, _) = message.split_once("]], ").unwrap();
        let (kind, attributes) = message.split_once(", nlmsg_seq=").unwrap();
        let (_, attributes) = attributes.split_once("}, ").unwrap();
        format!("{kind} {attributes}")
    };
    assert_eq!(asked("lunar: "), asked("dcb: "), "{output}");
    let refusals = output.matches("error=-EOPNOTSUPP").count();
    assert!(refusals >= 2, "{output}");
    says(&output, &["DCB                     this NIC has no DCB"]);
}

/// The neighbour is no Linux with DCB here, so lldpd tells what the command would change.
#[test]
fn a_neighbour_without_pfc_is_found_and_mended() {
    let [off, on] = ["00", "08"].map(|enabled| format!("00,80,c2 11 08,{enabled}"));
    let (off, on) = (tlv("add", &off), tlv("replace", &on));
    let doctor = "\"$0\" doctor fcoe://ours --listen 4s || true";
    let script = format!("{LLDPD}{off}{doctor}\n{on}{doctor}\n");
    let Some(output) = judged_by(&["ip", "lldpcli", "lldpd"], &script) else {
        return;
    };
    let (found, mended) = output
        .split_once(":on\n")
        .unwrap_or_else(|| panic!("{output}"));
    let told = [
        "priority flow control is off for priority 3 at this neighbor",
        "    on ",
        "): dcb pfc set dev PORT prio-pfc 3",
    ];
    says(found, &told);
    assert_eq!(found.matches("\n    ").count(), 1, "{output}");
    says(mended, &["ours: all is well"]);
}
