//! What tshark, which shares no code with us, makes of our bytes.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;

use iscsi::wire::bhs::{Itt, Ttt};
use iscsi::wire::data::DataOut;
use iscsi::wire::serial::{DataSn, StatSn};
use tests::client::Client;
use tests::initiator::{Data, Reply, Settings};
use tests::server::{ReadyLun, Server};
use tests::tool;

use crate::{must, proving, run, words};

/// A capture of one port on the loopback.
struct Capture {
    child: Child,
    told: BufReader<ChildStderr>,
}

impl Capture {
    /// Starts it, and waits until it says that it captures.
    fn start(ports: [u16; 2], file: &Path) -> Self {
        let ports = ports.map(|port| format!("tcp port {port}"));
        let mut child = Command::new("dumpcap")
            .args(["-i", "lo", "-s", "0", "-B", BUFFER_MIB])
            .args(["-f", &ports.join(" or "), "-w"])
            .arg(file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("File: ") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "dumpcap has ended");
        }
        Self { child, told }
    }

    /// Ends it with what it has, which is everything that was sent.
    fn stop(mut self) {
        // The last packets are still on their way through the kernel's ring.
        thread::sleep(Duration::from_millis(700));
        must("kill", &["-INT", &self.child.id().to_string()]);
        let mut told = String::new();
        self.told.read_to_string(&mut told).unwrap();
        self.child.wait().unwrap();
        assert!(told.contains("/0 "), "dumpcap lost packets: {told}");
    }
}

/// The kernel's ring for a capture. 2 MiB, which is what dumpcap has else, are full before it runs
/// again on a machine that is busy with other stories.
const BUFFER_MIB: &str = "256";

/// What other people's initiators say and are told.
fn talk(lun: &ReadyLun) {
    let address = lun.address.as_str();
    must("iscsi-ls", &["-s", &format!("iscsi://{}", lun.portals[0])]);
    for page in words("0 128 131 134 135 136 143 176 177 178") {
        // It fails over pages that it cannot print; tshark sees them all the same.
        run("iscsi-inq", &["-e", "1", "-c", page, address]);
    }
    let writes = [
        "write -P 1 0 1M",
        "read -P 1 0 1M",
        "discard 0 64k",
        "flush",
    ];
    let args: Vec<_> = writes.iter().flat_map(|command| ["-c", command]).collect();
    must("qemu-io", &[&["-f", "raw"], &args[..], &[address]].concat());
    run("iscsi-test-cu", &["-t", "ALL.Inquiry", address]);
    for suite in ["ALL.ProutReserve", "ALL.iSCSITMF"] {
        run("iscsi-test-cu", &["-d", "-t", suite, address, address]);
    }
}

/// What they do not say, and all of it with digests.
fn with_digests(lun: &ReadyLun) -> Client {
    let portal: SocketAddr = lun.portals[0].parse().unwrap();
    let mut settings = Settings::new(7, &lun.target);
    settings.keys = vec![
        ("HeaderDigest", "CRC32C".to_owned()),
        ("DataDigest", "CRC32C".to_owned()),
        ("iSCSIProtocolLevel", "2".to_owned()),
    ];
    let mut client = Client::connect(portal, settings).unwrap();
    // REPORT LUNS, and a command that ends with sense data.
    let report_luns = [0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    client.command(&report_luns, Data::In(256)).unwrap();
    client.command(&[0xff; 6], Data::None).unwrap();
    // Immediate data, unsolicited data, and what is asked for.
    for blocks in [1, 2048] {
        client.write(0, vec![7; blocks * 512], false).unwrap();
    }
    client.read(0, 2048).unwrap();
    client.initiator.ping(b"are you there?");
    assert!(matches!(client.reply().unwrap(), Reply::Nop(..)));
    client.initiator.text("SendTargets", "");
    assert!(matches!(client.reply().unwrap(), Reply::Text(..)));
    // Every function, but for those that end the session.
    for function in [1, 2, 3, 4, 5, 6, 8, 9, 10, 12] {
        let lun = client.lun;
        client.initiator.manage(function, lun, Itt::NONE);
        assert!(matches!(client.reply().unwrap(), Reply::Managed(..)));
    }
    let stray = DataOut {
        last: true,
        lun: client.lun,
        itt: Itt(77),
        ttt: Ttt(0xbad),
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(0),
        offset: 0,
    };
    client.initiator.push(stray.encode(), &[0; 512]);
    assert!(matches!(client.reply().unwrap(), Reply::Reject(_)));
    client
}

/// Mutual CHAP, that fails and that does not.
fn with_chap(lun: &ReadyLun) {
    for (secret, enters) in [("aliceknowsthat", false), ("aliceknowsthis", true)] {
        let user = format!("iscsi://alice%{secret}@");
        let address = lun.address.replacen("iscsi://", &user, 1);
        let proof = format!("{address}?target_user=target&target_password=targetknowsthis");
        assert_eq!(run("iscsi-inq", &[&proof]).good(), enters);
    }
}

/// The target goes down, and the initiator logs out when it is asked to.
fn part(server: Server, mut client: Client) {
    let stopping = thread::spawn(move || server.stop().unwrap());
    assert!(matches!(client.reply().unwrap(), Reply::Async(_)));
    client.initiator.log_out();
    assert_eq!(client.reply().unwrap(), Reply::LoggedOut(0));
    drop(client);
    stopping.join().unwrap();
}

/// What has to be among it, as display filters.
const SEEN: &[(&str, &str)] = &[
    ("a login with CHAP", "iscsi.keyvalue contains \"CHAP_R=\""),
    (
        "a target that proves itself",
        "iscsi.opcode == 0x23 && iscsi.keyvalue contains \"CHAP_R=\"",
    ),
    ("a login that is refused", "iscsi.login.status == 0x0201"),
    (
        "discovery",
        "iscsi.opcode == 0x24 && iscsi.keyvalue contains \"TargetAddress=\"",
    ),
    (
        "text with digests",
        "iscsi.opcode == 0x24 && iscsi.headerdigest32",
    ),
    ("task management", "iscsi.opcode == 0x02"),
    ("its response", "iscsi.opcode == 0x22"),
    ("R2T", "iscsi.opcode == 0x31"),
    ("Data-Out", "iscsi.opcode == 0x05"),
    (
        "immediate data",
        "iscsi.opcode == 0x01 && iscsi.immediatedata",
    ),
    ("Data-In", "iscsi.opcode == 0x25"),
    (
        "header and data digests",
        "iscsi.headerdigest32 && iscsi.datadigest32",
    ),
    (
        "sense data",
        "iscsi.opcode == 0x21 && iscsi.headerdigest32 && iscsi.scsiresponse.status == 2",
    ),
    ("a ping", "iscsi.opcode == 0x20"),
    ("Reject", "iscsi.opcode == 0x3f"),
    ("an asynchronous message", "iscsi.opcode == 0x32"),
    ("logout", "iscsi.opcode == 0x26"),
];

const MALFORMED: &str = "(_ws.malformed || _ws.expert.severity == error)";

/// libiscsi asks for VPD pages with an allocation length of 64 first. tshark knows no allocation
/// lengths in answers, and reads on where a page is cut off as it has to be.
const CUT_INQUIRY: &str = "(scsi_sbc.opcode == 0x12 && iscsi.datasegmentlength == 64)";

fn tshark(file: &Path, ports: &[u16], filter: &str) -> Vec<String> {
    let decode = ports
        .iter()
        .flat_map(|port| ["-d".to_owned(), format!("tcp.port=={port},iscsi")]);
    let mut command = Command::new("tshark");
    // Digests are found by the login, wherever both ends agreed on them.
    command.args(["-n", "-r"]).arg(file).args(decode);
    let text = tool::must(command.args(["-Y", filter])).unwrap();
    let frames = text.lines().filter(|line| line.contains("iSCSI"));
    frames.map(str::to_owned).collect()
}

#[test]
fn no_field_is_malformed() {
    let dir = tests::scratch("trace-capture").unwrap();
    let file = dir.join("talk.pcapng");
    let server = Server::start("trace", &["ram:64M"], &[]).unwrap();
    let guarded = proving("trace-chap", "ram:16M");
    let ports = [&server, &guarded].map(|server| {
        let portal: SocketAddr = server.luns[0].portals[0].parse().unwrap();
        portal.port()
    });
    let capture = Capture::start(ports, &file);
    with_chap(&guarded.luns[0]);
    talk(&server.luns[0]);
    let client = with_digests(&server.luns[0]);
    part(server, client);
    capture.stop();
    for (what, filter) in SEEN {
        let seen = tshark(&file, &ports, filter);
        assert!(!seen.is_empty(), "{what} was not seen");
    }
    let wrong = format!("iscsi && {MALFORMED} && !{CUT_INQUIRY}");
    let wrong = tshark(&file, &ports, &wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
