//! What tshark, which shares no code with us, makes of our octets.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::client::Client;
use tests::initiator::{Data, Reply, Settings};
use tests::server::{ReadyLun, Server};

use crate::{must, run};

/// A capture of one port on the loopback.
struct Capture {
    child: Child,
}

impl Capture {
    /// Starts it, and waits until it has opened its file, which it does once it captures.
    fn start(port: u16, file: &Path) -> Self {
        let child = Command::new("dumpcap")
            .args([
                "-q",
                "-i",
                "lo",
                "-s",
                "0",
                "-f",
                &format!("tcp port {port}"),
                "-w",
            ])
            .arg(file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while !file.exists() {
            assert!(Instant::now() < end, "dumpcap does not capture");
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(300));
        Self { child }
    }

    /// Ends it with what it has.
    fn stop(mut self) {
        // The last packets are still on their way through the kernel's ring.
        thread::sleep(Duration::from_millis(700));
        must("kill", &["-INT", &self.child.id().to_string()]);
        self.child.wait().unwrap();
    }
}

/// Something of everything that a target says.
fn talk(lun: &ReadyLun) {
    let address = lun.address.as_str();
    must("iscsi-ls", &["-s", &format!("iscsi://{}", lun.portals[0])]);
    for page in [
        "0", "128", "131", "134", "135", "136", "143", "176", "177", "178",
    ] {
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
    run(
        "iscsi-test-cu",
        &["-d", "-t", "ALL.ProutReserve", address, address],
    );
    run(
        "iscsi-test-cu",
        &["-d", "-t", "ALL.iSCSITMF", address, address],
    );
    with_digests(lun);
}

fn with_digests(lun: &ReadyLun) {
    let portal: SocketAddr = lun.portals[0].parse().unwrap();
    let mut settings = Settings::new(7, &lun.target);
    settings.keys = vec![
        ("HeaderDigest", "CRC32C".to_owned()),
        ("DataDigest", "CRC32C".to_owned()),
    ];
    let mut client = Client::connect(portal, settings).unwrap();
    // REPORT LUNS, and a command that ends with sense data.
    client
        .command(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], Data::In(256))
        .unwrap();
    client.command(&[0xff; 6], Data::None).unwrap();
    client.initiator.ping(b"are you there?");
    assert!(matches!(client.reply().unwrap(), Reply::Nop(..)));
    client.initiator.log_out();
    assert_eq!(client.reply().unwrap(), Reply::LoggedOut(0));
}

const MALFORMED: &str = "(_ws.malformed || _ws.expert.severity == error)";

/// libiscsi asks for VPD pages with an allocation length of 64 first. tshark knows no allocation
/// lengths in answers, and reads on where a page is cut off as it has to be.
const CUT_INQUIRY: &str = "(scsi_sbc.opcode == 0x12 && iscsi.datasegmentlength == 64)";

fn tshark(file: &Path, port: u16, filter: &str) -> Vec<String> {
    let file = file.to_string_lossy();
    let decode = format!("tcp.port=={port},iscsi");
    // Digests are found by the login, wherever both ends agreed on them.
    let text = must("tshark", &["-n", "-r", &file, "-d", &decode, "-Y", filter]);
    text.lines()
        .filter(|line| line.contains("iSCSI"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_field_is_malformed() {
    let dir = tests::scratch("trace-capture").unwrap();
    let file = dir.join("talk.pcapng");
    let server = Server::start("trace", &["ram:64M"], &[]).unwrap();
    let lun = &server.luns[0];
    let port = lun.portals[0].parse::<SocketAddr>().unwrap().port();
    let capture = Capture::start(port, &file);
    talk(lun);
    capture.stop();
    let all = tshark(&file, port, "iscsi");
    assert!(all.len() > 200, "only {} PDUs were seen", all.len());
    let wrong = tshark(
        &file,
        port,
        &format!("iscsi && {MALFORMED} && !{CUT_INQUIRY}"),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
