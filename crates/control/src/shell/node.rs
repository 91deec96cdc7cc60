//! The nodes of the displayed tree.

use fc::wire::names::Wwn;

use super::access;
use super::kind::BackstoreKind;
use super::portals;
use crate::check::portal;
use crate::tree::{LunNumber, PortalGroupTag, TargetRow, Tree};

/// A transport, which has a folder of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// `/iscsi`.
    Iscsi,
    /// `/tcm_fc`: Fibre Channel over Ethernet.
    FibreChannel,
    /// `/loopback`, which exists only so that its use can be explained.
    Loopback,
}

/// A node of the displayed tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// `/`.
    Root,
    /// `/backstores`.
    Backstores,
    /// `/backstores/iblock` and its like.
    Backstore(BackstoreKind),
    /// A volume, in the folder of its kind.
    StorageObject(BackstoreKind, String),
    /// `/iscsi`, `/tcm_fc`, `/loopback`.
    Fabric(Fabric),
    /// `/iscsi/IQN`.
    Target(String),
    /// `/iscsi/IQN/tpgt1`. A Fibre Channel port is both target and portal group: `/tcm_fc/WWPN`.
    Tpg(TpgPlace),
    /// `…/luns`.
    Luns(TpgPlace),
    /// `…/luns/lun0`.
    Lun(TpgPlace, LunNumber),
    /// `…/portals`.
    Portals(TpgPlace),
    /// `…/portals/10.10.1.3:3260`, as the tree has it.
    Portal(TpgPlace, String),
    /// `…/acls`.
    Acls(TpgPlace),
    /// `…/acls/IQN`, by its label.
    Acl(TpgPlace, String),
    /// `…/acls/IQN/mapped_lun0`.
    MappedLun(TpgPlace, String, LunNumber),
}

/// A portal group of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpgPlace {
    /// The target.
    pub target: String,
    /// The tag of the group.
    pub tag: PortalGroupTag,
}

impl Fabric {
    /// All fabrics.
    pub const ALL: [Self; 3] = [Self::Iscsi, Self::Loopback, Self::FibreChannel];

    /// Its name in a path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Iscsi => "iscsi",
            Self::FibreChannel => "tcm_fc",
            Self::Loopback => "loopback",
        }
    }

    /// The fabric that a target belongs to, by its name.
    #[must_use]
    pub fn of(target: &str) -> Self {
        let is_iscsi = address::normalise_iscsi_name(target).is_ok();
        if is_iscsi {
            Self::Iscsi
        } else {
            Self::FibreChannel
        }
    }

    /// Normalizes the name of a target or an initiator: lower case, a WWPN with colons.
    pub(super) fn normal_name(self, name: &str) -> Option<String> {
        match self {
            Self::Iscsi => address::normalise_iscsi_name(name).ok(),
            _ => name.parse::<Wwn>().ok().map(|wwn| wwn.to_string()),
        }
    }

    pub(super) fn targets(self, tree: &Tree) -> impl Iterator<Item = &String> {
        let targets = tree.target.keys();
        targets.filter(move |name| Self::of(name) == self)
    }
}

impl TpgPlace {
    /// The first portal group of a target, which every target has.
    #[must_use]
    pub fn first(target: impl Into<String>) -> Self {
        let target = target.into();
        let tag = PortalGroupTag(1);
        Self { target, tag }
    }

    pub(super) fn row<'a>(&self, tree: &'a Tree) -> Option<&'a TargetRow> {
        tree.target.get(&self.target)
    }
}

impl Node {
    /// The parent. The root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        match self {
            Self::Root | Self::Backstores | Self::Fabric(_) => Self::Root,
            Self::Backstore(_) => Self::Backstores,
            Self::StorageObject(kind, _) => Self::Backstore(*kind),
            Self::Target(name) => Self::Fabric(Fabric::of(name)),
            Self::Tpg(place) => match Fabric::of(&place.target) {
                Fabric::Iscsi => Self::Target(place.target.clone()),
                fabric => Self::Fabric(fabric),
            },
            Self::Luns(place) | Self::Portals(place) | Self::Acls(place) => {
                Self::Tpg(place.clone())
            }
            Self::Lun(place, _) => Self::Luns(place.clone()),
            Self::Portal(place, _) => Self::Portals(place.clone()),
            Self::Acl(place, _) => Self::Acls(place.clone()),
            Self::MappedLun(place, acl, _) => Self::Acl(place.clone(), acl.clone()),
        }
    }

    /// The node and its ancestors up to the root.
    pub(super) fn upwards(&self) -> impl Iterator<Item = Self> {
        let next = |node: &Self| (*node != Self::Root).then(|| node.parent());
        std::iter::successors(Some(self.clone()), next)
    }

    /// The last part of its path.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Root => "/".to_owned(),
            Self::Backstores => "backstores".to_owned(),
            Self::Backstore(kind) => kind.name().to_owned(),
            Self::Fabric(fabric) => fabric.name().to_owned(),
            Self::StorageObject(_, name) | Self::Target(name) => name.clone(),
            Self::Tpg(place) => match Fabric::of(&place.target) {
                Fabric::Iscsi => format!("tpgt{}", place.tag),
                _ => place.target.clone(),
            },
            Self::Luns(_) => "luns".to_owned(),
            Self::Portals(_) => "portals".to_owned(),
            Self::Acls(_) => "acls".to_owned(),
            Self::Lun(_, number) => format!("lun{number}"),
            Self::Portal(_, portal) => portals::label(portal),
            Self::Acl(_, label) => label.clone(),
            Self::MappedLun(_, _, number) => format!("mapped_lun{number}"),
        }
    }

    /// Its path from the root.
    #[must_use]
    pub fn path(&self) -> String {
        let mut names: Vec<_> = self.upwards().map(|node| node.name()).collect();
        names.pop();
        names.reverse();
        format!("/{}", names.join("/"))
    }

    /// Whether the tree has it.
    #[must_use]
    pub fn exists(&self, tree: &Tree) -> bool {
        *self == Self::Root || self.parent().exists(tree) && self.parent().has(tree, self)
    }

    fn has(&self, tree: &Tree, child: &Self) -> bool {
        matches!(child, Self::Backstore(_) | Self::Fabric(_)) || self.children(tree).contains(child)
    }

    /// The children in display order, without those that exist only to explain their absence.
    #[must_use]
    pub fn children(&self, tree: &Tree) -> Vec<Self> {
        let mut children = self.unsorted(tree);
        children.sort_by_cached_key(|child| sorting_key(child.name()));
        children
    }

    fn unsorted(&self, tree: &Tree) -> Vec<Self> {
        match self {
            Self::Root => {
                let fabrics = [Fabric::Iscsi, Fabric::FibreChannel].map(Self::Fabric);
                [Self::Backstores].into_iter().chain(fabrics).collect()
            }
            Self::Backstores => BackstoreKind::SHOWN.map(Self::Backstore).into(),
            Self::Backstore(kind) => volumes_of(tree, *kind)
                .map(|name| Self::StorageObject(*kind, name.clone()))
                .collect(),
            Self::Fabric(fabric) => fabric
                .targets(tree)
                .map(|name| Self::of_target(name))
                .collect(),
            Self::Target(name) => tree.target.get(name).map_or_else(Vec::new, |row| {
                let tags = portals::tags(&row.portals).into_iter();
                let place = |tag| TpgPlace {
                    target: name.clone(),
                    tag,
                };
                tags.map(|tag| Self::Tpg(place(tag))).collect()
            }),
            Self::Tpg(place) => {
                let portals = (Fabric::of(&place.target) == Fabric::Iscsi)
                    .then_some(Self::Portals as fn(_) -> _);
                let all = [Self::Acls as fn(_) -> _, Self::Luns]
                    .into_iter()
                    .chain(portals);
                all.map(|make| make(place.clone())).collect()
            }
            _ => self.rows_below(tree),
        }
    }

    fn rows_below(&self, tree: &Tree) -> Vec<Self> {
        let rows = |place: &TpgPlace, make: &dyn Fn(&TargetRow) -> Vec<Self>| {
            place.row(tree).map(make).unwrap_or_default()
        };
        match self {
            Self::Luns(place) => rows(place, &|row| {
                let luns = row.luns.keys();
                luns.map(|number| Self::Lun(place.clone(), *number))
                    .collect()
            }),
            Self::Portals(place) => rows(place, &|row| {
                let portals = portals::of_group(&row.portals, place.tag).iter();
                portals
                    .map(|one| Self::Portal(place.clone(), one.address.clone()))
                    .collect()
            }),
            Self::Acls(place) => rows(place, &|row| {
                let acls = access::acls(tree, row).into_iter();
                acls.map(|entry| Self::Acl(place.clone(), access::label(tree, entry)))
                    .collect()
            }),
            Self::Acl(place, label) => rows(place, &|row| {
                let entry = access::entry(tree, row, label).unwrap_or(label);
                let luns = access::seen_by(row, entry).keys();
                luns.map(|number| Self::MappedLun(place.clone(), label.clone(), *number))
                    .collect()
            }),
            _ => Vec::new(),
        }
    }

    /// The node of a target itself.
    pub(super) fn of_target(name: &str) -> Self {
        match Fabric::of(name) {
            Fabric::Iscsi => Self::Target(name.to_owned()),
            _ => Self::Tpg(TpgPlace::first(name)),
        }
    }

    /// The child that a word of a path names, by its old or its new name.
    #[must_use]
    pub fn child(&self, tree: &Tree, word: &str) -> Option<Self> {
        let hidden = match self {
            Self::Root => {
                (word == Fabric::Loopback.name()).then_some(Self::Fabric(Fabric::Loopback))
            }
            Self::Backstores => BackstoreKind::named(word).map(Self::Backstore),
            _ => None,
        };
        let is_meant = |child: &Self| child.name() == word || child.is_also(word);
        hidden.or_else(|| self.children(tree).into_iter().find(is_meant))
    }

    /// The portal group that it belongs to.
    #[must_use]
    pub fn place(&self) -> Option<&TpgPlace> {
        match self {
            Self::Tpg(place) | Self::Luns(place) | Self::Portals(place) | Self::Acls(place) => {
                Some(place)
            }
            Self::Lun(place, _)
            | Self::Portal(place, _)
            | Self::Acl(place, _)
            | Self::MappedLun(place, ..) => Some(place),
            _ => None,
        }
    }

    /// Other names of the same node.
    fn is_also(&self, word: &str) -> bool {
        let after = |heads: &[&str], number: String| {
            let mut tails = heads.iter().filter_map(|head| word.strip_prefix(head));
            tails.any(|tail| tail == number)
        };
        match self {
            Self::Target(name) => same_name(name, word),
            Self::Tpg(place) if Fabric::of(&place.target) == Fabric::Iscsi => {
                after(&["tpg", ""], place.tag.to_string())
            }
            Self::Tpg(place) => same_name(&place.target, word),
            Self::Lun(_, number) => after(&[""], number.to_string()),
            Self::MappedLun(_, _, number) => after(&["lun", ""], number.to_string()),
            Self::Acl(_, label) => same_name(label, word),
            Self::Portal(_, portal) => same_portal(portal, word),
            _ => false,
        }
    }
}

fn volumes_of(tree: &Tree, kind: BackstoreKind) -> impl Iterator<Item = &String> {
    let rows = tree.volume.iter();
    let of_kind = rows.filter(move |(_, row)| BackstoreKind::of(row) == kind);
    of_kind.map(|(name, _)| name)
}

/// Compares names: letters in either case, a WWPN with or without colons.
fn same_name(known: &str, word: &str) -> bool {
    let fabrics = [Fabric::Iscsi, Fabric::FibreChannel].into_iter();
    let mut names = fabrics.filter_map(|fabric| fabric.normal_name(word));
    names.any(|name| name == known)
}

/// Compares portals: with or without the port, an IPv6 address with or without brackets.
fn same_portal(known: &str, word: &str) -> bool {
    let word = portal(word).ok();
    word.is_some() && word == portal(known).ok()
}

/// Sorts numbers at the end of names as numbers: lun2 before lun10.
fn sorting_key(name: String) -> (String, u64) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (head, number) = name.split_at(name.len() - digits);
    match number.parse() {
        Ok(number) => (head.to_owned(), number),
        Err(_) => (name, 0),
    }
}
