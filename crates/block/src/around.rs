//! Volumes around one other volume, which they leave as it is but for one thing.

use std::fmt;
use std::io;

use scsi::medium::Traits;
use scsi::statistics::Usage;

use crate::particulars::Particulars;
use crate::volume::{CoreContext, Handle, Volume};

/// A volume around another one: what it does not say is as inside.
pub(crate) trait Around: Send + Sync + fmt::Debug {
    /// The volume inside.
    fn inside(&self) -> &dyn Volume;

    /// What can be done, of what can be done inside.
    fn limit(&self, inside: Traits) -> Traits {
        inside
    }

    /// What one core works with.
    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>>;
}

impl<A: Around> Volume for A {
    fn traits(&self) -> Traits {
        self.limit(self.inside().traits())
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.attach_around(core)
    }

    fn is_empty_at_start(&self) -> bool {
        self.inside().is_empty_at_start()
    }

    fn usage(&self) -> Option<Usage> {
        self.inside().usage()
    }

    /// Its data is that of what is inside.
    fn particulars(&self) -> Particulars {
        let inside = self.inside().particulars();
        Particulars {
            parts: vec![inside.clone()],
            ..Particulars::new(self.traits(), inside.identity)
        }
    }

    fn can_grow(&self) -> bool {
        self.inside().can_grow()
    }

    fn refresh(&self) -> io::Result<bool> {
        self.inside().refresh()
    }
}
