//! Attributes, as they came, and the room that they may take.

use std::collections::BTreeMap;

use super::FULL;
use crate::wire::ct::CtReject;
use crate::wire::ct::fdmi::FdmiAttribute;

/// Attributes of an HBA or of a port, one of each type.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes(BTreeMap<u16, Vec<u8>>);

impl Attributes {
    /// With these, in place of those of the same types.
    pub(super) fn with(&self, list: Vec<FdmiAttribute>) -> Self {
        let mut all = self.clone();
        let added = list.into_iter();
        all.0
            .extend(added.map(|FdmiAttribute { kind, value }| (kind, value)));
        all
    }

    /// Without those of these types; with none, if no type is named.
    pub(super) fn without(&self, which: &[FdmiAttribute]) -> Self {
        let mut rest = self.clone();
        if which.is_empty() {
            rest.0.clear();
        }
        for FdmiAttribute { kind, .. } in which {
            rest.0.remove(kind);
        }
        rest
    }

    pub(super) fn list(&self) -> Vec<FdmiAttribute> {
        let all = self.0.iter();
        let attribute = |(kind, value): (&u16, &Vec<u8>)| FdmiAttribute {
            kind: *kind,
            value: value.clone(),
        };
        all.map(attribute).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.0.values().map(|value| value.len() + OVERHEAD).sum()
    }
}

/// How many bytes all attributes take.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: usize,
}

impl Room {
    /// Puts `after` in the place of `before`, if there is room for it.
    pub(super) fn exchange(
        &mut self,
        before: &mut Attributes,
        after: Attributes,
    ) -> Result<(), CtReject> {
        self.check(Some(before), &after)?;
        self.taken = self.taken - before.size() + after.size();
        *before = after;
        Ok(())
    }

    /// Whether there is room for `after` in the place of `before`. What becomes less has room.
    pub(super) fn check(
        &self,
        before: Option<&Attributes>,
        after: &Attributes,
    ) -> Result<(), CtReject> {
        let (old, new) = (before.map_or(0, Attributes::size), after.size());
        let taken = self.taken - old + new;
        if new > old && (new > RECORD_MAX || taken > ALL_MAX) {
            return Err(FULL);
        }
        Ok(())
    }

    /// The attributes are gone.
    pub(super) fn release(&mut self, gone: &Attributes) {
        self.taken -= gone.size();
    }
}

/// The most bytes of attributes of an HBA, and as many of a port. Linux registers some 3,000.
pub(super) const RECORD_MAX: usize = 32 << 10;

/// The most bytes of all attributes.
pub(super) const ALL_MAX: usize = 32 << 20;

/// What an attribute takes beside its value.
const OVERHEAD: usize = 32;
