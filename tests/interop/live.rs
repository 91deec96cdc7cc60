//! What is served changes in this process while tools that people have use it from others.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use block::file::UndoLog;
use engine::inventory::{Inventory, LunRow, TargetRow, UnitRow};
use engine::mailbox::SessionInfo;
use engine::serve::options::{RingKind, ServeError};
use engine::server::{Server, ServerConfig, ServerHandle};
use iscsi::target::NodeAccess;
use scsi::wire::lun::Lun;
use tests::client::Client;
use tests::initiator::{Data, Settings};

use crate::{file, must, run, words};

const TARGET: &str = "iqn.2026-11.org.lunar:live";

/// A server that stops at the end.
struct Live {
    server: ServerHandle,
    inventory: Inventory,
}

impl Live {
    /// Serves LUN 0 from memory.
    fn start() -> Self {
        let mut inventory = Inventory {
            portals: vec![([127, 0, 0, 1], 0).into()],
            ..Inventory::default()
        };
        inventory
            .targets
            .insert(TARGET.into(), TargetRow::default());
        show(&mut inventory, 0, "ram:64M");
        let mut config = ServerConfig::new("iqn.2026-11.org.lunar:us".into()).unwrap();
        if std::env::var("LUNAR_RING").as_deref() == Ok("epoll") {
            config.ring = RingKind::Epoll;
        }
        let undo = UndoLog::default();
        let server = Server::start(config, inventory.clone(), &undo).unwrap();
        Self { server, inventory }
    }

    fn portal(&self) -> SocketAddr {
        self.server.luns("0")[0].portals[0].parse().unwrap()
    }

    fn url(&self, lun: u16) -> String {
        format!("iscsi://{}/{TARGET}/{lun}", self.portal())
    }

    /// A session, once there is one.
    fn session(&self) -> SessionInfo {
        loop {
            match self.server.sessions().pop() {
                Some(session) => return session,
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Changes what is served.
    fn apply(&mut self, change: impl FnOnce(&mut Inventory)) -> Result<(), ServeError> {
        let mut next = self.inventory.clone();
        change(&mut next);
        self.server.apply(next.clone())?;
        self.inventory = next;
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.server.stop();
        let _ = self.server.wait();
    }
}

/// Something that is changed.
type Edit<'a> = &'a dyn Fn(&mut Inventory);

fn target_of(inventory: &mut Inventory) -> &mut TargetRow {
    inventory.targets.get_mut(TARGET).unwrap()
}

fn show(inventory: &mut Inventory, lun: u16, address: &str) {
    let row = UnitRow::new(address.parse().unwrap(), address.to_owned());
    inventory.units.insert(lun.to_string(), row.into());
    let target = target_of(inventory);
    target.luns.retain(|one| one.lun != lun);
    target.luns.push(LunRow::new(lun, lun.to_string()));
}

fn hide(inventory: &mut Inventory, lun: u16) {
    inventory.units.remove(&lun.to_string());
    target_of(inventory).luns.retain(|one| one.lun != lun);
}

/// QEMU's driver, which is libiscsi, writes for as long as it is let.
fn load(url: &str) -> Child {
    let bench = "bench -w -c 100000000 -d 8 -s 4096 -f raw -t none";
    let mut qemu = Command::new("qemu-img");
    qemu.args(words(bench)).arg(url).stdout(Stdio::null());
    qemu.stderr(Stdio::piped()).spawn().unwrap()
}

/// Ends it; it must have been at it until now.
fn end(mut load: Child) {
    let ended = load.try_wait().unwrap();
    load.kill().unwrap();
    let said = load.wait_with_output().unwrap();
    assert_eq!(ended, None, "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn luns_come_and_grow_and_go_beside_one_that_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let mut live = Live::start();
    let load = load(&live.url(0));
    let witness = Witness::start(live.portal());
    for turn in 0..200_u64 {
        let _ = fs::remove_file(&path);
        let (url, address) = (live.url(1), file(folder.path(), "disk?size=1M"));
        live.apply(|next| show(next, 1, &address)).unwrap();
        if turn % 20 == 0 {
            let capacity = must("iscsi-readcapacity16", &["-s", &url]);
            assert_eq!(capacity.trim(), "1048576");
            grow(&path, &url);
        }
        live.apply(|next| hide(next, 1)).unwrap();
        if turn % 20 == 0 {
            assert!(!run("iscsi-inq", &[&url]).good(), "LUN 1 is gone");
        }
    }
    end(load);
    let (reads, longest) = witness.end();
    eprintln!("{reads} reads of LUN 0 meanwhile, the longest took {longest:?}");
}

/// Reads LUN 0 again and again, each time waiting for the answer.
struct Witness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Duration)>,
}

impl Witness {
    fn start(portal: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut client = Client::connect(portal, Settings::new(7, TARGET)).unwrap();
            let (mut reads, mut longest) = (0, Duration::ZERO);
            while !stopped.load(Relaxed) {
                let begun = Instant::now();
                let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0];
                let ended = client.command(&read, Data::In(4096)).unwrap();
                // What LUNs there are is told as a unit attention.
                let is_told = ended.status == 2 && ended.sense[2] & 0x0f == 6;
                assert!(ended.status == 0 || is_told, "{ended:02x?}");
                (reads, longest) = (reads + 1, longest.max(begun.elapsed()));
            }
            (reads, longest)
        });
        Self { stop, thread }
    }

    fn end(self) -> (u64, Duration) {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

/// A file that grows is seen to by the server itself.
fn grow(path: &Path, url: &str) {
    let disk = fs::File::options().write(true).open(path).unwrap();
    disk.set_len(2 << 20).unwrap();
    // Counted in looks: a machine that is short of memory was seen to take 4 s to start a program.
    for _ in 0..200 {
        // It fails where the unit attention of the growth comes between its own commands.
        let ran = run("iscsi-readcapacity16", &["-s", url]);
        let (status, said) = (ran.status, ran.output.trim());
        if said == "2097152" {
            return;
        }
        eprintln!("not grown yet: {status:?} {said}");
        thread::sleep(Duration::from_millis(100));
    }
    panic!("it is not seen to grow");
}

#[test]
fn another_volume_under_a_unit_that_is_used_costs_nobody_an_error() {
    let mut live = Live::start();
    let load = load(&live.url(0));
    for turn in 0..40 {
        // Each is another address, and so another volume.
        let address = if turn % 2 == 0 {
            "delay:0s(ram:64M)"
        } else {
            "ram:64M"
        };
        live.apply(|next| show(next, 0, address)).unwrap();
    }
    end(load);
}

#[test]
fn what_is_wrong_is_refused_and_what_was_served_stays() {
    let mut live = Live::start();
    let url = live.url(0);
    let twice: Edit<'_> = &|next| target_of(next).luns.push(LunRow::new(0, "0"));
    let nowhere: Edit<'_> = &|next| show(next, 1, "file:/nowhere/disk");
    let wrong = [
        (twice, "has LUN 0 twice"),
        (nowhere, "cannot open file:/nowhere/disk"),
    ];
    for (change, told) in wrong {
        let error = live.apply(change).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert!(run("iscsi-inq", &[&url]).good());
    }
}

/// Another unit takes its place, so a host that is logged in is told to look again.
#[test]
fn a_disk_gets_other_blocks_and_its_host_is_told() {
    let mut live = Live::start();
    let mut host = Client::connect(live.portal(), Settings::new(1, TARGET)).unwrap();
    assert_eq!(sense(&mut host, &TEST_UNIT_READY, &[]), (0, 0));
    live.apply(|next| Arc::make_mut(next.units.get_mut("0").unwrap()).block_size = Some(4096))
        .unwrap();
    let told = sense(&mut host, &TEST_UNIT_READY, &[]);
    assert_eq!(told, (UNIT_ATTENTION, 0x3f0e), "LUNs have changed");
    let url = live.url(0);
    let blocks = must("iscsi-readcapacity16", &[&url]);
    assert!(blocks.contains("4096"), "{blocks}");
}

#[test]
fn a_portal_comes_and_goes_and_a_name_that_is_revoked_is_out() {
    let mut live = Live::start();
    let first = live.url(0);
    live.apply(|next| next.portals.push(([127, 0, 0, 2], 0).into()))
        .unwrap();
    let second = live.server.luns("0")[0].portals[1].clone();
    let second = format!("iscsi://{second}/{TARGET}/0");
    must("iscsi-inq", &[&second]);
    let load = load(&first);
    live.apply(|next| next.portals.truncate(1)).unwrap();
    assert!(!run("iscsi-inq", &[&second]).good(), "nobody listens there");
    live.session();
    end(load);
    let name = "iqn.2026-11.org.lunar.test:friend";
    live.apply(|next| target_of(next).access = NodeAccess::only([name.to_owned()].into()))
        .unwrap();
    assert_eq!(live.server.sessions(), []);
    let stranger = run("iscsi-inq", &[&first]);
    assert!(!stranger.good(), "a stranger is not let in");
    must("iscsi-inq", &["-i", name, &first]);
}

#[test]
fn a_target_is_where_its_portals_are() {
    const OTHER: &str = "iqn.2026-11.org.lunar:other";
    let mut live = Live::start();
    let portals = [1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], 0)));
    live.apply(|next| {
        next.portals = portals.to_vec();
        let mut other = target_of(next).clone();
        other.portals = vec![(6, portals[1])];
        next.targets.insert(OTHER.into(), other);
    })
    .unwrap();
    let luns = live.server.luns("0");
    let other = luns.iter().find(|lun| lun.target == OTHER).unwrap();
    let first = luns.iter().find(|lun| lun.target == TARGET).unwrap();
    assert_eq!((first.portals.len(), other.portals.len()), (2, 1));
    let url = |portal: &str| format!("iscsi://{portal}/{OTHER}/0");
    let (wrong, right) = (url(&first.portals[0]), url(&other.portals[0]));
    must("iscsi-inq", &[&right]);
    assert!(!run("iscsi-inq", &[&wrong]).good(), "it is not there");
    let portal = format!("iscsi://{}", first.portals[0]);
    let listed = must("iscsi-ls", &[&portal]);
    assert!(
        listed.contains(&format!("{},6", other.portals[0])),
        "{listed}"
    );
    let (mine, mut others) = (load(&live.url(0)), load(&right));
    while live.server.sessions().len() < 2 {
        thread::sleep(Duration::from_millis(10));
    }
    live.apply(|next| {
        let moved = next.targets.get_mut(OTHER).unwrap();
        moved.portals = vec![(6, portals[0])];
    })
    .unwrap();
    let left = live.server.sessions();
    let left: Vec<_> = left.iter().map(|one| one.target.as_deref()).collect();
    assert_eq!(left, [Some(TARGET)], "the other target has left its portal");
    end(mine);
    // It would try to log in again for ever.
    others.kill().unwrap();
    others.wait().unwrap();
}

/// Sends this until nothing but the command itself is told, and gives its sense key and code.
fn sense(client: &mut Client, cdb: &[u8], data: &[u8]) -> (u8, u16) {
    loop {
        let data = match data {
            [] => Data::None,
            data => Data::Out(data.into()),
        };
        let ended = client.command(cdb, data).unwrap();
        if ended.status == 0 {
            return (0, 0);
        }
        let code = u16::from_be_bytes([ended.sense[12], ended.sense[13]]);
        match ended.sense[2] & 0x0f {
            UNIT_ATTENTION if code >> 8 == 0x29 => {}
            key => return (key, code),
        }
    }
}

const UNIT_ATTENTION: u8 = 0x6;
const TEST_UNIT_READY: [u8; 6] = [0; 6];

#[test]
fn a_lun_is_for_reading_while_others_write() {
    let mut live = Live::start();
    let load = load(&live.url(0));
    live.apply(|next| target_of(next).luns.push(LunRow::new(1, "0")))
        .unwrap();
    let mut reader = Client::connect(live.portal(), Settings::new(1, TARGET)).unwrap();
    reader.lun = Lun::from_index(1);
    assert_eq!(sense(&mut reader, &TEST_UNIT_READY, &[]), (0, 0));
    let write = [0x2a, 0, 0, 0, 0, 8, 0, 0, 1, 0];
    assert_eq!(sense(&mut reader, &write, &[7; 512]), (0, 0));
    live.apply(|next| target_of(next).luns[1].read_only = true)
        .unwrap();
    assert_eq!(sense(&mut reader, &write, &[7; 512]), (6, 0x2a01));
    assert_eq!(sense(&mut reader, &write, &[7; 512]), (7, 0x2700));
    reader.read(0, 8).unwrap();
    end(load);
}

#[test]
fn a_session_is_seen_and_dropped() {
    let live = Live::start();
    let mut load = load(&live.url(0));
    let session = live.session();
    assert_eq!(session.target.as_deref(), Some(TARGET));
    assert!(live.server.drop_session(session.tsih), "it has ended");
    assert!(!live.server.drop_session(session.tsih), "there is none");
    load.kill().unwrap();
    load.wait().unwrap();
}

#[test]
fn ten_thousand_luns_come_at_once() {
    let mut live = Live::start();
    let before = tests::process::resident(std::process::id()).unwrap();
    let start = Instant::now();
    live.apply(|next| (1..=10_000).for_each(|lun| show(next, lun, "null:1G")))
        .unwrap();
    let took = start.elapsed();
    let after = tests::process::resident(std::process::id()).unwrap();
    let each = after.saturating_sub(before) / 10_000;
    eprintln!("10,000 LUNs in {took:?}, {each} bytes each");
    assert!(each < 64 << 10, "{each} bytes for a LUN");
    // libiscsi has no form for numbers from 256 on.
    must("iscsi-inq", &[&live.url(255)]);
}
