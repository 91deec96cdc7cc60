//! What volumes say of themselves beyond their traits.

use scsi::medium::Traits;

use crate::identity;

/// What a volume says of itself, with all that is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// What it is and can do.
    pub traits: Traits,
    /// Tells it from every other volume, over restarts too; `None` where nothing does.
    pub identity: Option<String>,
    /// What else there is to say, by headings.
    pub groups: Vec<DetailGroup>,
    /// The volumes that it is made of.
    pub parts: Vec<Details>,
}

/// Names and values under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGroup {
    /// What they are about.
    pub heading: &'static str,
    /// Names, and values as text.
    pub values: Vec<(&'static str, String)>,
}

impl Details {
    /// Of a volume that says no more than its traits.
    #[must_use]
    pub const fn new(traits: Traits, identity: Option<String>) -> Self {
        Self {
            traits,
            identity,
            groups: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The serial number of a unit that serves it, where it was not told another.
    #[must_use]
    pub fn serial(&self) -> Option<String> {
        self.identity.as_deref().map(identity::serial)
    }

    /// The identities of all that is not made of others.
    #[must_use]
    pub fn leaves(&self) -> Vec<&str> {
        if self.parts.is_empty() {
            self.identity.as_deref().into_iter().collect()
        } else {
            self.parts.iter().flat_map(Self::leaves).collect()
        }
    }
}
