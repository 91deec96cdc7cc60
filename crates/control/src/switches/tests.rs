//! Switches at cables: what starts and stops them, what only exchanges their zones, and what cannot
//! be had.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::switch::options::Place;
use engine::switch::read_open_zones;
use engine::switch::testing::Enode;
use fc::fabric::DropReason;
use io::ring::RingKind;
use tempfile::TempDir;

use super::zone_files::{ZoneFiles, open_readable};
use super::{Switches, at};
use crate::alarm::{AlarmBoard, AlarmKind};
use crate::document::parse;
use crate::tree::Tree;

struct Rig {
    folder: TempDir,
    switches: Arc<Switches>,
    alarms: Arc<AlarmBoard>,
    tree: Tree,
}

impl Rig {
    /// Nothing is configured yet.
    fn new() -> Self {
        Self::with(ZoneFiles::default())
    }

    fn with(zone_files: ZoneFiles) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let alarms = Arc::new(AlarmBoard::default());
        let state = (folder.path().join("state"), RingKind::Auto);
        let switches = Switches::with(zone_files, state, Arc::clone(&alarms)).unwrap();
        Self {
            folder,
            switches,
            alarms,
            tree: Tree::default(),
        }
    }

    fn tree(&self, rows: &str) -> Tree {
        let folder = self.folder.path().display().to_string();
        parse(&format!("version = 1\n{}", rows.replace("DIR", &folder))).unwrap()
    }

    /// As the gate does.
    fn apply(&mut self, rows: &str) -> Result<(), Vec<String>> {
        let tree = self.tree(rows);
        let prepared = self.switches.prepare(&tree, &self.tree)?;
        self.switches.switch(prepared);
        self.tree = tree;
        Ok(())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// The rows that run, and how many ports each has.
    fn running(&self) -> Vec<(String, usize)> {
        let surveys = self.switches.surveys().into_iter();
        surveys
            .map(|(name, survey)| (name, survey.unwrap().ports.len()))
            .collect()
    }

    /// A host that is logged in at a cable.
    fn host(&self, cable: &str) -> Enode {
        let mut host = Enode::plug(&Place::Cable(self.path(cable)), None);
        host.log_in();
        host
    }

    /// Frames that the switch of a row has dropped as no zone has both ports.
    fn zoned(&self, row: &str) -> u64 {
        let mut surveys = self.switches.surveys().into_iter();
        let (_, survey) = surveys.find(|(name, _)| name == row).unwrap();
        let ports = survey.unwrap().ports.into_iter();
        let dropped = ports.flat_map(|port| port.dropped);
        let zoned = dropped.filter(|(reason, _)| *reason == DropReason::Zoned);
        zoned.map(|(_, frames)| frames).sum()
    }

    fn told(&self) -> Vec<String> {
        self.alarms.list().iter().map(ToString::to_string).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.switches.stop();
    }
}

const ONE: &str = "[switch.a]\nplaces = [\"cable:DIR/a\"]\nopen = true\n";
const TWO: &str = "[switch.a]\nplaces = [\"cable:DIR/a\", \"cable:DIR/b\"]\nopen = true\n";

#[test]
fn a_row_runs_as_long_as_it_is_there() {
    let mut rig = Rig::new();
    rig.apply(ONE).unwrap();
    assert_eq!(rig.running(), [("a".to_owned(), 1)]);
    assert!(
        Path::exists(&rig.path("state/switches/a")),
        "N_Port_IDs have a place"
    );
    rig.apply(TWO).unwrap();
    assert_eq!(rig.running(), [("a".to_owned(), 2)]);
    rig.apply(&TWO.replace("switch.a", "switch.b")).unwrap();
    assert_eq!(
        rig.running(),
        [("b".to_owned(), 2)],
        "another name has the same ports"
    );
    rig.apply("").unwrap();
    assert_eq!(rig.running(), []);
    assert_eq!(rig.told(), [""; 0]);
}

/// Hosts stay logged in. What is sent once the change has been made goes by the new zones.
#[test]
fn zones_are_exchanged_while_a_switch_runs() {
    let mut rig = Rig::new();
    rig.apply(TWO).unwrap();
    let thread = |rig: &Rig| Arc::as_ptr(rig.switches.rows()["a"].running.as_ref().unwrap());
    let before = thread(&rig);
    let (mut one, mut other) = (rig.host("a"), rig.host("b"));
    one.send(other.fc_id, b"open");
    assert_eq!(other.next_frame(), (one.fc_id, b"open".to_vec()));

    let zones = "zones = [\"zone z = port:cable:DIR/a\", \"zoneset s = z\", \"active s\"]";
    rig.apply(&TWO.replace("open = true", zones)).unwrap();
    one.send(other.fc_id, b"zoned");
    // What is answered later was read later.
    one.solicit();
    assert_eq!(rig.zoned("a"), 1);

    rig.apply(TWO).unwrap();
    one.send(other.fc_id, b"open again");
    assert_eq!(other.next_frame(), (one.fc_id, b"open again".to_vec()));
    assert_eq!(thread(&rig), before);
    rig.apply(&format!("{TWO}domain = 7\n")).unwrap();
    assert_ne!(thread(&rig), before, "another domain is another switch");
}

#[test]
fn what_cannot_be_opened_is_refused_and_changes_nothing() {
    let mut rig = Rig::new();
    rig.apply(ONE).unwrap();
    let more = format!("{ONE}[switch.b]\nplaces = [\"cable:DIR/none/b\"]\nopen = true\n");
    let [refused] = &rig.apply(&more).unwrap_err()[..] else {
        panic!("one line");
    };
    assert!(refused.starts_with("switch.b: "), "{refused}");
    assert!(
        refused.contains("its directory does not exist"),
        "{refused}"
    );
    assert_eq!(rig.running(), [("a".to_owned(), 1)]);
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn what_cannot_run_at_the_start_is_an_alarm_until_it_can() {
    let rig = Rig::new();
    rig.switches
        .start(&rig.tree(&ONE.replace("DIR/a", "DIR/later/a")));
    let [told] = &rig.told()[..] else {
        panic!("one alarm");
    };
    assert!(
        told.contains("switch a: cable:") && told.contains("tried again"),
        "{told}"
    );
    fs::create_dir(rig.path("later")).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while rig.running().is_empty() {
        assert!(Instant::now() < until, "{:?}", rig.told());
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn a_zone_file_counts_whole_or_not_at_all() {
    let mut rig = Rig::new();
    let zones = |rig: &Rig, text: &str| fs::write(rig.path("zones"), text).unwrap();
    zones(&rig, "zone z = port:eth1\nzoneset s = z\nactive s\n");
    let row = ONE.replace("open = true", "zone-file = \"DIR/zones\"");
    rig.apply(&row).unwrap();
    let active = |rig: &Rig| rig.switches.rows()["a"].zones.active().map(str::to_owned);
    assert_eq!(active(&rig).as_deref(), Some("s"));

    zones(&rig, "zone z = port:eth1\nzoneset s = y\n");
    let [refused] = &rig.apply(&row).unwrap_err()[..] else {
        panic!("one line");
    };
    assert!(
        refused.ends_with("zones:2:13: there is no zone `y`"),
        "{refused}"
    );
    // It keeps nothing else from being changed.
    rig.apply(&format!("{row}[group.g]\ninitiators = [\"*\"]\n"))
        .unwrap();
    assert!(
        rig.told()[0].contains("the zones of switch a stay as they were"),
        "{:?}",
        rig.told()
    );
    assert_eq!(active(&rig).as_deref(), Some("s"));

    zones(&rig, "zone z = port:eth1\nzoneset t = z\nactive t\n");
    rig.apply(&row).unwrap();
    assert_eq!(active(&rig).as_deref(), Some("t"));
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn rows_share_a_zone_file() {
    let mut rig = Rig::new();
    fs::write(
        rig.path("zones"),
        "zone z = port:eth1\nzoneset s = z\nactive s\n",
    )
    .unwrap();
    let one = ONE.replace("open = true", "zone-file = \"DIR/zones\"");
    let other = one
        .replace("switch.a", "switch.b")
        .replace("DIR/a\"", "DIR/b\"");
    rig.apply(&format!("{one}{other}")).unwrap();
    let rows = rig.switches.rows();
    assert_eq!(
        ["a", "b"].map(|name| rows[name].zones.active()),
        [Some("s"); 2]
    );
}

/// The option of `lunar switch` is no key of a row.
#[test]
fn a_zone_file_that_is_no_file_is_told_by_its_key() {
    let mut rig = Rig::new();
    fs::create_dir(rig.path("folder")).unwrap();
    let row = ONE.replace("open = true", "zone-file = \"DIR/folder\"");
    let refused = rig.apply(&row).unwrap_err().concat();
    assert!(refused.contains(": zone-file /"), "{refused}");
    assert!(!refused.contains("--zones"), "{refused}");
}

/// Its words would be told to those who may not read it.
#[test]
fn a_file_that_only_its_owner_reads_is_no_zone_file() {
    let mut rig = Rig::new();
    let path = rig.path("secret");
    fs::write(&path, "correct horse\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let row = ONE.replace("open = true", "zone-file = \"DIR/secret\"");
    let refused = rig.apply(&row).unwrap_err();
    assert!(refused[0].contains("chmod o+r"), "{refused:?}");
    assert!(!refused[0].contains("correct"), "{refused:?}");
}

/// A path may name one file when it is looked at, and another one a moment later.
#[test]
fn the_zone_file_that_is_read_is_the_one_whose_permissions_were_looked_at() {
    let rig = Rig::new();
    let [path, secret] = ["zones", "secret"].map(|name| rig.path(name));
    fs::write(&path, "zone z = port:eth1\nzoneset s = z\nactive s\n").unwrap();
    fs::write(&secret, "correct horse\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let file = open_readable(&path).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&secret, &path).unwrap();
    let zones = read_open_zones("zone-file", &path, file).unwrap();
    assert_eq!(zones.active(), Some("s"));
    let refused = open_readable(&path).unwrap_err();
    assert!(refused.contains("chmod o+r"), "{refused}");
}

/// As on a server that does not answer. A tree with three of them is waited for once.
#[test]
fn a_zone_file_that_hangs_holds_a_change_up_for_a_while_and_the_next_one_not_at_all() {
    let mut rig = Rig::with(ZoneFiles {
        read: |_| loop {
            thread::park();
        },
        patience: Duration::from_secs(1),
        ..ZoneFiles::default()
    });
    rig.apply(ONE).unwrap();
    let hung = |name| {
        let row = ONE.replace("open = true", &format!("zone-file = \"DIR/{name}\""));
        row.replace("DIR/a\"", &format!("DIR/{name}-cable\""))
            .replace("switch.a", &format!("switch.{name}"))
    };
    let began = Instant::now();
    let refused = rig.apply(&["x", "y", "z"].map(hung).concat()).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2), "one deadline");
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(
        refused[0].ends_with("not read after 1s: see whether its disk answers"),
        "{refused:?}"
    );
    let began = Instant::now();
    let refused = rig.apply(&hung("x")).unwrap_err();
    assert!(refused[0].contains("still being read"), "{refused:?}");
    assert!(began.elapsed() < Duration::from_millis(500), "it waits");
    assert_eq!(rig.running(), [("a".to_owned(), 1)]);
}

/// What was read for a change that is refused is not what is served.
#[test]
fn the_alarm_of_zones_stays_with_a_change_that_is_not_made() {
    let mut rig = Rig::new();
    let zones = "zone z = port:eth1\nzoneset s = z\nactive s\n";
    fs::write(rig.path("zones"), zones).unwrap();
    let row = ONE.replace("open = true", "zone-file = \"DIR/zones\"");
    rig.apply(&row).unwrap();
    fs::write(rig.path("zones"), "wrong").unwrap();
    rig.apply(&format!("{row}[group.g]\ninitiators = [\"*\"]\n"))
        .unwrap();
    assert_eq!(rig.told().len(), 1);
    fs::write(rig.path("zones"), zones).unwrap();
    let refused = format!("{row}[switch.b]\nplaces = [\"cable:DIR/none/b\"]\nopen = true\n");
    rig.apply(&refused).unwrap_err();
    assert_eq!(rig.told().len(), 1, "the zones that are served are older");
    rig.apply(&row).unwrap();
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn a_switch_that_does_not_answer_is_an_alarm_until_it_does() {
    let mut rig = Rig::new();
    rig.apply(ONE).unwrap();
    rig.switches.tell_of_silence("a", true);
    assert!(rig.told()[0].contains("switch a has not answered for 5s"));
    assert_eq!(rig.alarms.list()[0].kind, AlarmKind::Switch);
    assert_eq!(rig.alarms.list()[0].at.as_deref(), Some(&*at("a")));
    assert_eq!(rig.running(), [("a".to_owned(), 1)]);
    assert_eq!(rig.told(), [""; 0]);
}

/// Whoever reads the alarm would look for what stops the daemon.
#[test]
fn a_start_that_panics_is_not_told_as_the_end_of_the_daemon() {
    let rig = Rig::new();
    let start = |start: fn() -> _| {
        assert!(rig.switches.start_aside("a", start).is_none());
        rig.told().concat()
    };
    let panicked = start(|| panic!("as a bug would"));
    assert!(
        panicked.contains("its start has panicked (the log tells why)"),
        "{panicked}"
    );
    rig.switches.stop();
    let stopped = start(|| panic!("it does not begin"));
    assert!(stopped.contains("the daemon ends"), "{stopped}");
}
