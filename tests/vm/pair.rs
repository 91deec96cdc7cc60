//! Two guests on one disk, by iSCSI or by FCoE, and what they do by turns.

use anyhow::{Context, Result};
use tests::server::Server;

use crate::Scene;
use crate::lane::BRIDGE;
use crate::serving::{Disk, TARGET, ended_but, options, start};
use crate::variations::{Variation, Word};

/// What happens to them, and to the server.
pub(crate) type Story = fn(&mut Pair, &Server) -> Result<()>;

/// The two of them.
pub(crate) struct Pair<'a, 'b> {
    scene: &'a mut Scene<'b>,
    /// For each.
    words: [Vec<Word>; 2],
    /// What the server may warn of.
    expected: &'static [&'static str],
}

pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation, story: Story) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let portal = format!("{}:3260", scene.lane.host(BRIDGE));
    let allow = ["--allow", &name(0), "--allow", &name(1)];
    let listen = ["--iqn", TARGET, "--listen", &portal];
    let options = options(scene, &[&listen, &allow[..]].concat());
    let server = start(&dir, &[&disk.address()], &options)?;
    let words = [
        ("transport", "iscsi".to_owned()),
        ("target", TARGET.to_owned()),
        ("portal", portal),
    ];
    let mut pair = Pair::new(scene, variation, &words);
    story(&mut pair, &server)?;
    ended_but(server, pair.expected)
}

/// The ports of the guests come up while they hear nothing: a frame of FIP that arrives meanwhile
/// can be the end of Linux 6.1's libfcoe.
pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation, story: Story) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let lane = scene.lane;
    let bridge = lane.bridge();
    let ports = [0, 1].map(|guest| format!("20:00:{}", lane.mac(guest)));
    let allow = ["--allow", &ports[0], "--allow", &ports[1]];
    let options = options(scene, &[&["--fcoe", &bridge], &allow[..]].concat());
    let words = [("transport", "fcoe".to_owned()), ("mtu", "2500".to_owned())];
    let mut pair = Pair::new(scene, variation, &words);
    let cut = |cut| (0..2).try_for_each(|guest| lane.cut(BRIDGE + guest, cut));
    cut(true)?;
    pair.both("port_is_up", "")?;
    cut(false)?;
    let server = start(&dir, &[&disk.address()], &options)?;
    story(&mut pair, &server)?;
    ended_but(server, pair.expected)
}

/// The name of an initiator in a guest.
pub(crate) fn name(guest: usize) -> String {
    format!("iqn.2026-11.org.lunar.test:node{}", guest + 1)
}

impl<'a, 'b> Pair<'a, 'b> {
    fn new(scene: &'a mut Scene<'b>, variation: &Variation, disk: &[Word]) -> Self {
        let nodes = [0, 1].map(|guest| scene.lane.on_bridge(guest)).join(",");
        let words = [0, 1].map(|guest| {
            let mut words = vec![
                ("stack", variation.name.to_owned()),
                ("node", (guest + 1).to_string()),
                ("nodes", nodes.clone()),
                ("initiator", name(guest)),
            ];
            words.extend_from_slice(disk);
            words
        });
        Self {
            scene,
            words,
            expected: &[],
        }
    }

    pub(crate) fn first(&mut self, action: &str, given: &str) -> Result<()> {
        let script = self.scene.cell.script;
        self.scene.guest.act(script, &self.words[0], action, given)
    }

    pub(crate) fn second(&mut self, action: &str, given: &str) -> Result<()> {
        let guest = self.scene.second.as_mut().context("it is dead")?;
        guest.act(self.scene.cell.script, &self.words[1], action, given)
    }

    pub(crate) fn both(&mut self, action: &str, given: &str) -> Result<()> {
        self.first(action, given)?;
        self.second(action, given)
    }

    /// The second one dies, as if its power was cut, which the server may notice.
    pub(crate) fn second_dies(&mut self) {
        self.scene.second = None;
        self.expected = &["silence (RFC 7143 §7.14)"];
    }
}
