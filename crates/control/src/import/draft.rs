//! The tree that an importer builds: rows under names that are free, volumes that are shared where
//! several LUNs show one medium, secrets beside the tree, and the list of what is left out.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use address::{Address, BlockAddress, FileAddress, HostPort, ISCSI_PORT, LUN_MAX, Size};
use zeroize::Zeroizing;

use super::{Imported, LeftOut};
use crate::secret::SecretSource;
use crate::tree::{
    Access, ChapRow, GroupRow, HashName, LunNumber, LunRow, PortalGroupTag, PortalRow, Portals,
    TargetRow, VolumeRow,
};

/// A tree that is being built.
#[derive(Debug, Default)]
pub(super) struct Draft {
    done: Imported,
    /// Volumes by what holds them.
    media: HashMap<String, String>,
    /// Groups by their wish and content.
    groups: HashMap<(String, String), String>,
    /// Names of secrets by their wish and a hash of the secret.
    secrets: HashMap<(String, u64), String>,
    /// How many names were given out for a wish. Without these four maps a file with many rows of
    /// one name would take time by the square of their number.
    given: HashMap<(&'static str, String), usize>,
}

/// A user of CHAP, with the line that names it.
#[derive(Clone, Default)]
pub(super) struct User {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) secret: Zeroizing<String>,
}

/// Who may log in to a target, as most formats say it: the same for every initiator.
#[derive(Clone, Default)]
pub(super) struct Admission {
    /// Initiators; `None` stands for every initiator.
    pub(super) names: Option<Vec<Initiator>>,
    /// Users of CHAP; empty asks for none.
    pub(super) users: Vec<User>,
    /// What the target proves itself with.
    pub(super) mutual: Option<User>,
    /// There is a restriction that cannot be had here, so that none of them can log in.
    pub(super) is_closed: bool,
}

/// An initiator, with the line that names it.
#[derive(Clone)]
pub(super) struct Initiator {
    pub(super) line: usize,
    pub(super) name: String,
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.secret) == (&other.name, &other.secret)
    }
}

impl Draft {
    /// Names a part of the file that has no counterpart.
    pub(super) fn leave(&mut self, line: usize, text: impl Into<String>, why: impl Into<String>) {
        self.done.left_out.push(LeftOut {
            line,
            text: text.into(),
            why: why.into(),
            is_default: false,
        });
    }

    /// The same for a value that the other program has by default.
    pub(super) fn leave_default(
        &mut self,
        line: usize,
        text: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.leave(line, text, why);
        if let Some(last) = self.done.left_out.last_mut() {
            last.is_default = true;
        }
    }

    /// Says something of the tree as a whole, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.done.notes.contains(&text) {
            self.done.notes.push(text);
        }
    }

    /// Adds a volume and tells its name. A medium that is there already is one logical unit,
    /// however many LUNs show it; RAM has no name by which it could be the same.
    pub(super) fn volume(&mut self, line: usize, wish: &str, row: VolumeRow) -> String {
        let is_shared = !row.address.starts_with("ram:") && !row.address.starts_with("null:");
        let known = self.media.get(&row.address).filter(|_| is_shared).cloned();
        let Some(name) = known else {
            let wish = row_name(wish);
            let name = self.free("volume", &wish, |done, name| {
                done.tree.volume.contains_key(name)
            });
            self.media.insert(row.address.clone(), name.clone());
            self.done.tree.volume.insert(name.clone(), row);
            return name;
        };
        if self.done.tree.volume.get(&name) != Some(&row) {
            let why = format!("volume {name} is the same medium, whose settings stand");
            self.leave(line, row.address, why);
        }
        name
    }

    /// Adds a group and tells its name; one that is there already is used again.
    pub(super) fn group(&mut self, wish: &str, row: GroupRow) -> String {
        let wish = row_name(wish);
        let content = (wish.clone(), format!("{row:?}"));
        if let Some(name) = self.groups.get(&content) {
            return name.clone();
        }
        let name = self.free("group", &wish, |done, name| {
            done.tree.group.contains_key(name)
        });
        self.groups.insert(content, name.clone());
        self.done.tree.group.insert(name.clone(), row);
        name
    }

    /// Adds a target; `false` if there is one of this name.
    pub(super) fn target(&mut self, name: &str, row: TargetRow) -> bool {
        let targets = &mut self.done.tree.target;
        let is_new = !targets.contains_key(name);
        if is_new {
            targets.insert(name.to_owned(), row);
        }
        is_new
    }

    /// Puts a secret aside; the row names it.
    pub(super) fn chap(&mut self, kind: &str, user: &User) -> ChapRow {
        let (name, secret) = (&user.name, &user.secret);
        if !SECRET_BYTES.contains(&secret.len()) {
            self.note(format!(
                "the CHAP secret of {name} has {} bytes, and 12 to 255 are needed \
                 (RFC 7143 §9.2.1): choose another",
                secret.len()
            ));
        }
        let wish = format!("{kind}-{}", state_name(name));
        let mut hasher = DefaultHasher::new();
        secret.hash(&mut hasher);
        let content = (wish.clone(), hasher.finish());
        let known = self.secrets.get(&content);
        let known = known.filter(|known| self.done.secrets.get(*known) == Some(secret));
        let place = match known {
            Some(place) => place.clone(),
            None => self.free("secret", &wish, |done, name| {
                done.secrets.contains_key(name)
            }),
        };
        self.secrets.insert(content, place.clone());
        self.done.secrets.insert(place.clone(), secret.clone());
        ChapRow {
            user: name.clone(),
            secret: SecretSource::State(place),
        }
    }

    /// A group with credentials. These targets know MD5 only (LIO did until 2020), so their hosts
    /// may too.
    pub(super) fn chap_group(
        &mut self,
        initiators: Vec<String>,
        user: &User,
        mutual: Option<&User>,
    ) -> GroupRow {
        self.note(
            "groups with CHAP have chap-min = \"md5\", which is what their hosts were asked for: \
             take it out where all hosts know SHA-256",
        );
        GroupRow {
            initiators,
            chap: Some(self.chap("chap", user)),
            mutual: mutual.map(|mutual| self.chap("mutual", mutual)),
            chap_min: Some(HashName::Md5),
        }
    }

    /// Admits initiators to a target. Of a closed one the users are kept, in a group without
    /// initiators: who may be in it is all that is missing.
    pub(super) fn admit(&mut self, row: &mut TargetRow, admission: &Admission) {
        let names = match (&admission.names, admission.is_closed) {
            (names, true) => {
                for one in names.iter().flatten() {
                    let why = "the target is closed, as another restriction is left out";
                    self.leave(one.line, &*one.name, why);
                }
                Vec::new()
            }
            (None, false) => vec!["*".to_owned()],
            (Some(names), false) => names.iter().map(|one| one.name.clone()).collect(),
        };
        let mut users = admission.users.iter();
        let Some(user) = users.next() else {
            if let Some(mutual) = &admission.mutual {
                let text = format!("{} ***", mutual.name);
                let why = "a target proves itself only to initiators that do, by a user of CHAP";
                self.leave(mutual.line, text, why);
            }
            row.allow.extend(names);
            return;
        };
        for further in users {
            let text = format!("{} ***", further.name);
            let why = "a group has one user of CHAP: make a group for each user's initiators";
            self.leave(further.line, text, why);
        }
        let group = self.chap_group(names, user, admission.mutual.as_ref());
        row.allow.push(self.group(&user.name, group));
    }

    /// The name, or the first of `-2`, `-3` and so on that is free.
    fn free(
        &mut self,
        kind: &'static str,
        wish: &str,
        is_taken: fn(&Imported, &str) -> bool,
    ) -> String {
        let number = self.given.entry((kind, wish.to_owned())).or_insert(0);
        loop {
            *number += 1;
            let name = match *number {
                1 => wish.to_owned(),
                number => format!("{wish}-{number}"),
            };
            if !is_taken(&self.done, &name) {
                return name;
            }
        }
    }

    /// What was built.
    pub(super) fn finish(self) -> Imported {
        self.done
    }
}

/// A LUN, if there can be one of this number.
pub(super) fn lun(number: u64) -> Option<LunNumber> {
    let number = u16::try_from(number).ok()?;
    (number <= LUN_MAX).then_some(LunNumber(number))
}

/// What stands behind a LUN.
pub(super) fn lun_row(volume: String, access: Access) -> LunRow {
    match access {
        Access::ReadWrite => LunRow::Volume(volume),
        Access::ReadOnly => LunRow::Limited { volume, access },
    }
}

/// The address of what other targets name by its path alone.
pub(super) fn path_address(path: &str) -> Address {
    if path.starts_with("/dev/") {
        Address::Block(BlockAddress {
            device: PathBuf::from(path),
            read_only: false,
        })
    } else {
        Address::File(FileAddress {
            path: PathBuf::from(path),
            ..FileAddress::default()
        })
    }
}

/// The address of what is dropped and reads as zeros.
pub(super) fn null_address(bytes: u64) -> Option<Address> {
    (bytes >= 512).then_some(Address::Null(Size(bytes)))
}

/// The name that a volume gets from its path.
pub(super) fn path_name(path: &str) -> &str {
    let file = path.rsplit('/').find(|part| !part.is_empty());
    let file = file.unwrap_or("volume");
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() && !path.starts_with("/dev/") => stem,
        _ => file,
    }
}

/// A portal as a tree writes it. IPv6 addresses may come without brackets, and port 3260 is left
/// out.
pub(super) fn portal(host: &str, port: Option<&str>) -> Option<PortalRow> {
    let bare = host.matches(':').count() > 1 && !host.starts_with('[');
    let host = if bare {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let text = match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    let at: HostPort = text.parse().ok().filter(|at: &HostPort| at.port > 0)?;
    let address = match at.port {
        ISCSI_PORT => at.host.to_string(),
        _ => at.to_string(),
    };
    Some(address.into())
}

/// Portals by their tags in the shortest form.
pub(super) fn portals(mut groups: BTreeMap<u16, Vec<PortalRow>>) -> Portals {
    groups.retain(|_, portals| !portals.is_empty());
    let only_first = groups.keys().all(|tag| *tag == 1);
    if only_first {
        return Portals::One(groups.remove(&1).unwrap_or_default());
    }
    let tagged = groups.into_iter();
    Portals::Groups(
        tagged
            .map(|(tag, all)| (PortalGroupTag(tag), all))
            .collect(),
    )
}

/// All addresses of this machine, which is where targets are that name no portal.
pub(super) fn everywhere() -> Portals {
    Portals::One(vec!["0.0.0.0".into(), "[::]".into()])
}

/// The last part of a name, by which people call an initiator or a target. It is not such a name
/// itself, as a group of that name could not be told from the initiator.
pub(super) fn short_name(name: &str) -> String {
    let parts: Vec<_> = name.split(':').collect();
    match parts[..] {
        [whole] => whole.rsplit('.').next().unwrap_or(whole).to_owned(),
        [.., before, last] if last.len() < 3 && parts.len() == 3 => format!("{before}-{last}"),
        // A WWPN.
        [.., last] if last.len() < 3 => format!("host-{}", parts.concat()),
        [.., last] => last.to_owned(),
        [] => String::new(),
    }
}

/// A row's name out of any text: without what means something else in `vol:NAME`, and never `*`,
/// which is everybody.
fn row_name(wish: &str) -> String {
    let is_wrong = |c: char| c.is_control() || c.is_whitespace() || "@/,()?&%*".contains(c);
    let kept = wish
        .trim()
        .chars()
        .map(|c| if is_wrong(c) { '-' } else { c });
    let name: String = kept.take(NAME_CHARS).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

/// A name of a secret in the state directory.
fn state_name(text: &str) -> String {
    let name = text.chars().take(NAME_CHARS).map(|c| match c {
        c if c.is_ascii_alphanumeric() || "._-".contains(c) => c,
        _ => '-',
    });
    name.collect()
}

/// Longer names are cut: they would not fit into a file name.
const NAME_CHARS: usize = 100;

/// How long a secret of CHAP may be (RFC 7143 §9.2.1).
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 12..=255;
