//! Statements become zones: first what each line says, then what the names in it stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::Index;
use super::words::{Word, statements};
use super::{
    ByName, Definition, MemberIdentifier, TEXT_MAX, ZoneEntry, ZoneError, ZoneFault, Zones, by_name,
};
use crate::wire::names::{FcId, Wwn};

/// What the lines say, in their order.
#[derive(Default)]
struct Statements<'a> {
    aliases: Definitions<'a>,
    zones: Definitions<'a>,
    sets: Definitions<'a>,
    active: Option<Word<'a>>,
    default: Option<Word<'a>>,
}

/// Definitions of one kind.
#[derive(Default)]
struct Definitions<'a> {
    list: Vec<(Word<'a>, Vec<Word<'a>>)>,
    lines: BTreeMap<&'a str, usize>,
}

pub(super) fn parse(text: &str) -> Result<Zones, ZoneError> {
    if text.len() > TEXT_MAX {
        return Err(ZoneError {
            line: 1,
            column: 1,
            what: ZoneFault::TooLong,
        });
    }
    let mut read = Statements::default();
    for words in statements(text) {
        read.add(&words)?;
    }
    read.resolve()
}

impl<'a> Statements<'a> {
    fn add(&mut self, words: &[Word<'a>]) -> Result<(), ZoneError> {
        let [first, rest @ ..] = words else {
            return Ok(());
        };
        match first.text {
            "alias" => self.aliases.add(first, rest, "alias NAME = MEMBER …"),
            "zone" => self.zones.add(first, rest, "zone NAME = MEMBER …"),
            "zoneset" => self.sets.add(first, rest, "zoneset NAME = ZONE …"),
            "active" => set(&mut self.active, first, rest, "active NAME"),
            "default" => set(&mut self.default, first, rest, "default deny|permit"),
            _ => Err(first.wrong(ZoneFault::Statement)),
        }
    }

    fn resolve(self) -> Result<Zones, ZoneError> {
        let aliases = self.aliases.resolve(|word| {
            member(word).ok_or_else(|| match self.aliases.lines.get(word.text) {
                Some(_) => word.wrong(ZoneFault::AliasOfAlias),
                None => word.wrong(ZoneFault::Member),
            })
        })?;
        let zones = self.zones.resolve(|word| match member(word) {
            Some(member) => Ok(ZoneEntry::Member(member)),
            None if self.aliases.has(word) => Ok(ZoneEntry::Alias(word.text.into())),
            None => Err(word.wrong(ZoneFault::NoAlias)),
        })?;
        let sets = self.sets.resolve(|word| {
            let known = self.zones.has(word).then(|| word.text.into());
            known.ok_or_else(|| word.wrong(ZoneFault::NoZone))
        })?;
        let permits = permits(self.default.as_ref())?;
        let mut read = Zones {
            aliases,
            zones,
            sets,
            active: None,
            permits,
            index: Index::default(),
        };
        if let Some(word) = self.active {
            read.activate(&word)?;
        }
        Ok(read)
    }
}

impl<'a> Definitions<'a> {
    /// `NAME = WORD …`
    fn add(
        &mut self,
        first: &Word<'a>,
        rest: &[Word<'a>],
        form: &'static str,
    ) -> Result<(), ZoneError> {
        let [name, rest @ ..] = rest else {
            return Err(first.fault(ZoneFault::Incomplete(form)));
        };
        if !is_name(name.text) {
            return Err(name.wrong(ZoneFault::Name));
        }
        let list = match rest {
            [equals, list @ ..] if equals.text == "=" && !list.is_empty() => list,
            [other, ..] if other.text != "=" => return Err(other.wrong(ZoneFault::NoEquals)),
            _ => return Err(name.fault(ZoneFault::Incomplete(form))),
        };
        let mut seen = BTreeSet::new();
        if let Some(twice) = list.iter().find(|word| !seen.insert(meaning(word))) {
            return Err(twice.wrong(ZoneFault::Twice));
        }
        if let Some(line) = self.lines.insert(name.text, name.line) {
            return Err(name.wrong(|name| ZoneFault::Again { name, line }));
        }
        self.list.push((*name, list.to_vec()));
        Ok(())
    }

    fn has(&self, word: &Word<'_>) -> bool {
        self.lines.contains_key(word.text)
    }

    /// What the words of all lists mean.
    fn resolve<T>(
        &self,
        mean: impl Fn(&Word<'a>) -> Result<T, ZoneError>,
    ) -> Result<Vec<Definition<T>>, ZoneError> {
        let definition = |(name, list): &(Word<'a>, Vec<Word<'a>>)| {
            let list = list.iter().map(&mean).collect::<Result<_, _>>()?;
            let name = name.text.into();
            Ok(Definition { name, list })
        };
        self.list.iter().map(definition).collect()
    }
}

impl Zones {
    /// Makes the zone set of this name the active one.
    fn activate(&mut self, word: &Word<'_>) -> Result<(), ZoneError> {
        let set = self.sets.iter().find(|set| *set.name == *word.text);
        let set = set.ok_or_else(|| word.wrong(ZoneFault::NoSet))?;
        let active: BTreeSet<_> = set.list.iter().collect();
        let aliases = by_name(&self.aliases);
        let numbered = self.zones.iter().zip(0..);
        for (zone, number) in numbered.filter(|(zone, _)| active.contains(&zone.name)) {
            for member in zone.list.iter().flat_map(|entry| entry.members(&aliases)) {
                let added = self.index.add(member, number);
                added.map_err(|_| word.fault(ZoneFault::TooMany))?;
            }
        }
        self.active = Some(set.name.clone());
        Ok(())
    }
}

impl ZoneEntry {
    /// The one that it is, or those of the alias.
    fn members<'a>(&'a self, aliases: &ByName<'a, MemberIdentifier>) -> &'a [MemberIdentifier] {
        match self {
            Self::Member(member) => std::slice::from_ref(member),
            Self::Alias(name) => {
                let alias = aliases.get(&**name);
                alias.map_or(&[], |alias| &alias.list)
            }
        }
    }
}

/// `WORD VALUE`, once in a file.
fn set<'a>(
    slot: &mut Option<Word<'a>>,
    first: &Word<'a>,
    rest: &[Word<'a>],
    form: &'static str,
) -> Result<(), ZoneError> {
    match (rest, &slot) {
        ([], _) => Err(first.fault(ZoneFault::Incomplete(form))),
        ([_, more, ..], _) => Err(more.wrong(ZoneFault::TooMuch)),
        (_, Some(before)) => {
            let line = before.line;
            Err(first.wrong(|name| ZoneFault::Again { name, line }))
        }
        ([value], None) => {
            *slot = Some(*value);
            Ok(())
        }
    }
}

fn permits(word: Option<&Word<'_>>) -> Result<bool, ZoneError> {
    match word.map(|word| (word, word.text)) {
        None | Some((_, "deny")) => Ok(false),
        Some((_, "permit")) => Ok(true),
        Some((word, _)) => Err(word.wrong(ZoneFault::Default)),
    }
}

/// A name is never taken for a member, nor a member for a name.
fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on = |c: char| c.is_ascii_alphanumeric() || "-_$^".contains(c);
    begins && text.len() <= NAME_MAX && text.chars().all(goes_on) && text.parse::<Wwn>().is_err()
}

/// What a word identifies, if it identifies something.
fn member(word: &Word<'_>) -> Option<MemberIdentifier> {
    let Some((kind, value)) = word.text.split_once(':') else {
        return word.text.parse().ok().map(MemberIdentifier::Port);
    };
    match kind {
        "node" => value.parse().ok().map(MemberIdentifier::Node),
        "id" => n_port_id(value).map(MemberIdentifier::Id),
        "port" if !value.is_empty() => Some(MemberIdentifier::Place(Arc::from(value))),
        _ => word.text.parse().ok().map(MemberIdentifier::Port),
    }
}

/// A word, or the member that it is in the one way in which members are written.
fn meaning(word: &Word<'_>) -> String {
    member(word).map_or_else(|| word.text.to_owned(), |member| member.to_string())
}

/// `010100` or `0x010100`, as `fcoeadm` prints it.
fn n_port_id(text: &str) -> Option<FcId> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() != 6 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let id = FcId(u32::from_str_radix(digits, 16).ok()?);
    (id != FcId::UNIDENTIFIED && !id.is_well_known()).then_some(id)
}

/// The most characters of a name (FC-GS).
const NAME_MAX: usize = 64;
