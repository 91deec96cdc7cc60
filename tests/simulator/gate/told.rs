//! What a plan has told is what hosts have seen: which sessions have ended, and which unit
//! attentions there were.
//!
//! | a row says | its hosts have seen |
//! |---|---|
//! | nothing, or `quiet` | nothing |
//! | `told`: LUNs have changed | 3F/0E once on each LUN; 29/00 on LUNs that are new |
//! | `told`: write protection has changed | 2A/01, for the volume and for the access to it |
//! | `told`: capacity has changed | 2A/09 |
//! | `cuts` | that their session has ended |
//! | `loses` | any of these, on what shows the row |

use std::collections::BTreeSet;

use control::plan::{Difference, Impact, Plan};
use control::tree::Tree;

use super::trees::{self, SeenLun};
use super::{Site, Witness};

const LUNS_CHANGED: u16 = 0x3f0e;
const POWER_ON: u16 = 0x2900;
const MODE_CHANGED: u16 = 0x2a01;
const CAPACITY_CHANGED: u16 = 0x2a09;

/// A plan, and the trees that it is about.
pub(super) struct Judge<'a> {
    pub(super) site: &'a Site,
    pub(super) plan: &'a Plan,
    pub(super) old: &'a Tree,
    pub(super) new: &'a Tree,
}

impl Judge<'_> {
    /// Looks whether hosts have seen what they were to see.
    pub(super) fn judge(&self) {
        for witness in &self.site.witnesses {
            self.judge_end(witness);
            if witness.is_clean && !self.has_ended(witness) {
                self.judge_attentions(witness);
            }
        }
        // Those of switches are `fabrics`' to judge.
        let rows = self.plan.differences.iter();
        for row in rows.filter(|row| !row.row.starts_with("switch.")) {
            self.judge_row(row);
        }
    }

    fn has_ended(&self, witness: &Witness) -> bool {
        let host = &self.site.hosts[witness.host];
        host.sessions != witness.session || !host.port.logged_in
    }

    /// A session ends where a row says so, and where it may no longer be.
    fn judge_end(&self, witness: &Witness) {
        let host = &self.site.hosts[witness.host];
        if host.has_ended(witness.session) {
            return;
        }
        let (ended, named) = (self.has_ended(witness), self.named(witness));
        let group = |tree| trees::portal_group(tree, host.target, host.portal);
        let sees = trees::sees(self.new, host.initiator, host.target);
        let may_be = sees.is_some() && group(self.new) == group(self.old);
        assert_eq!(ended, !may_be, "{named}: whether its session has ended");
        let mut cuts = self
            .rows_of(witness)
            .filter(|row| row.impact == Impact::Cuts);
        assert!(
            !ended || cuts.next().is_some(),
            "{named}: ended untold: {}",
            self.plan
        );
    }

    fn judge_attentions(&self, witness: &Witness) {
        let host = &self.site.hosts[witness.host];
        let named = self.named(witness);
        let rows: Vec<_> = self.rows_of(witness).collect();
        let may_hear: BTreeSet<u16> = rows.iter().flat_map(|row| attentions(row)).collect();
        for (lun, heard) in &host.heard {
            let codes: BTreeSet<u16> = heard.iter().copied().collect();
            for code in &codes {
                let times = heard.iter().filter(|one| *one == code).count();
                assert!(
                    times <= may_times(&rows, *code),
                    "{named}, LUN {lun}: {heard:04x?}, too often: {}",
                    self.plan
                );
            }
            // A LUN that is new tells whatever it likes behind that.
            let is_new = codes.contains(&POWER_ON) && may_hear.contains(&POWER_ON);
            assert!(
                is_new || codes.is_subset(&may_hear),
                "{named}, LUN {lun}: {heard:04x?} untold: {}",
                self.plan
            );
        }
        let [before, after] = [self.old, self.new].map(|tree| self.view(witness, tree));
        let are_others = !before.keys().eq(after.keys())
            || before
                .values()
                .zip(after.values())
                .any(|(before, after)| before.is_another(after));
        for (lun, after) in after {
            let before = before.get(&lun);
            let heard = host.heard.get(&lun).cloned().unwrap_or_default();
            assert_eq!(
                heard.contains(&LUNS_CHANGED),
                are_others,
                "{named}, LUN {lun}: heard {heard:04x?}: {}",
                self.plan
            );
            let missing = must_hear(&rows, before, &after);
            let missing: Vec<_> = missing.filter(|code| !heard.contains(code)).collect();
            assert!(
                missing.is_empty(),
                "{named}, LUN {lun}: heard {heard:04x?}, not {missing:04x?}: {}",
                self.plan
            );
        }
    }

    /// Whoever is named in a row has noticed it in one session at the least.
    fn judge_row(&self, row: &Difference) {
        for name in &row.hosts {
            let mut own = self.site.witnesses.iter().filter(|witness| {
                let host = &self.site.hosts[witness.host];
                host.initiator == name && self.concerns(row, witness)
            });
            let noticed = |witness: &Witness| {
                let host = &self.site.hosts[witness.host];
                let heard = || host.heard.values().flatten().next().is_some();
                let has_left = host.has_ended(witness.session);
                let has_luns = || !self.view(witness, self.new).is_empty();
                match row.impact {
                    Impact::Quiet => false,
                    Impact::Told => heard() || !has_luns() || !witness.is_clean || has_left,
                    Impact::Cuts => self.has_ended(witness),
                    Impact::Loses => true,
                }
            };
            let is_sure = self.site.unseen == 0;
            assert!(own.any(noticed) || !is_sure, "{name} has not noticed {row}");
        }
    }

    /// The rows that tell a session something.
    fn rows_of(&self, witness: &Witness) -> impl Iterator<Item = &Difference> {
        let name = self.site.hosts[witness.host].initiator;
        let rows = self.plan.differences.iter();
        rows.filter(move |row| {
            row.hosts.iter().any(|host| host == name) && self.concerns(row, witness)
        })
    }

    fn concerns(&self, row: &Difference, witness: &Witness) -> bool {
        let host = &self.site.hosts[witness.host];
        match row.row.split_once('.') {
            Some(("target", name)) => name == host.target,
            Some(("volume", name)) => {
                let views = [self.old, self.new].map(|tree| self.view(witness, tree));
                let mut seen = views.iter().flat_map(|view| view.values());
                seen.any(|lun| lun.volume == name)
            }
            _ => true,
        }
    }

    fn view(&self, witness: &Witness, tree: &Tree) -> trees::View {
        let host = &self.site.hosts[witness.host];
        trees::sees(tree, host.initiator, host.target).unwrap_or_default()
    }

    fn named(&self, witness: &Witness) -> String {
        let host = &self.site.hosts[witness.host];
        let (initiator, target) = (host.initiator, host.target);
        format!("host {}, {initiator} at {target}", witness.host)
    }
}

/// What the hosts of a row may hear.
fn attentions(row: &Difference) -> Vec<u16> {
    let all = vec![LUNS_CHANGED, POWER_ON, MODE_CHANGED, CAPACITY_CHANGED];
    let effect = row.effect.as_deref().unwrap_or_default();
    match row.impact {
        Impact::Quiet | Impact::Cuts => Vec::new(),
        Impact::Loses => all,
        Impact::Told => match effect {
            "LUNs have changed" => vec![LUNS_CHANGED, POWER_ON],
            "LUNs and write protection have changed" => {
                vec![LUNS_CHANGED, POWER_ON, MODE_CHANGED]
            }
            "write protection has changed" => vec![MODE_CHANGED],
            "capacity has changed" => vec![CAPACITY_CHANGED],
            "capacity and write protection have changed" => vec![CAPACITY_CHANGED, MODE_CHANGED],
            other => panic!("nothing is known of {other:?}"),
        },
    }
}

/// How often a LUN may tell it. A volume and the access to it can be changed at once; each protects
/// or lets go, one after the other, and the host can have asked in between.
fn may_times(rows: &[&Difference], code: u16) -> usize {
    let tells = |kind: &str| {
        rows.iter()
            .any(|row| row.row.starts_with(kind) && attentions(row).contains(&code))
    };
    let has_two = code == MODE_CHANGED && tells("volume.") && (tells("target.") || tells("group."));
    if has_two { 2 } else { 1 }
}

/// What a LUN has to tell, of which these rows tell.
fn must_hear<'a>(
    rows: &'a [&Difference],
    before: Option<&'a SeenLun>,
    after: &'a SeenLun,
) -> impl Iterator<Item = u16> + 'a {
    let is_told = |row: &&&Difference| row.impact == Impact::Told;
    rows.iter().filter(is_told).flat_map(move |row| {
        let is_of_volume = row.row.strip_prefix("volume.") == Some(&*after.volume);
        let is_same = before.is_some_and(|before| before.volume == after.volume);
        match row.effect.as_deref() {
            // A group can have other LUNs at one target alone.
            Some("LUNs have changed") if row.row.starts_with("target.") => vec![LUNS_CHANGED],
            _ if is_of_volume && is_same => attentions(row),
            _ => Vec::new(),
        }
    })
}
