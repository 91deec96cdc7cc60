//! Volumes around one other volume, which they leave as it is but for one thing, and their handles.

use std::fmt;
use std::io;
use std::ops::Range;

use ::io::memory::Recall;
use scsi::medium::{MediumOp, Traits};
use scsi::statistics::SpaceUsage;

use crate::details::Details;
use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};

/// A volume around another one: what it does not say is as inside.
pub(crate) trait Filter: Send + Sync + fmt::Debug {
    /// The volume inside.
    fn inside(&self) -> &dyn Volume;

    /// What can be done, of what can be done inside.
    fn limit(&self, inside: Traits) -> Traits {
        inside
    }

    /// What it has gathered itself.
    fn own_gathered(&self) -> Vec<String> {
        Vec::new()
    }

    /// What one core works with.
    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>>;
}

impl<A: Filter> Volume for A {
    fn traits(&self) -> Traits {
        self.limit(self.inside().traits())
    }

    fn prepare(&self, cores: u16) -> io::Result<()> {
        self.inside().prepare(cores)
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.attach_around(core)
    }

    fn is_empty_at_start(&self) -> bool {
        self.inside().is_empty_at_start()
    }

    fn usage(&self) -> Option<SpaceUsage> {
        self.inside().usage()
    }

    fn shortened_to(&self) -> Option<u64> {
        self.inside().shortened_to()
    }

    fn is_removed(&self) -> bool {
        self.inside().is_removed()
    }

    fn written(&self) -> Vec<(i64, u64)> {
        self.inside().written()
    }

    fn written_before(&self) -> Vec<(i64, u64)> {
        self.inside().written_before()
    }

    /// Its data is that of what is inside.
    fn particulars(&self) -> Details {
        let inside = self.inside().particulars();
        Details {
            parts: vec![inside.clone()],
            ..Details::new(self.traits(), inside.identity)
        }
    }

    fn gathered(&self) -> Vec<String> {
        let mut lines = self.own_gathered();
        lines.extend(self.inside().gathered());
        lines
    }

    fn can_grow(&self) -> bool {
        self.inside().can_grow()
    }

    fn refresh(&self) -> io::Result<bool> {
        self.inside().refresh()
    }
}

/// A handle around another one: whatever happens is for the one inside.
pub(crate) trait FilterHandle {
    /// Starts an operation.
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>);

    /// Lets the handle inside act, and takes what it has done by that.
    fn let_act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    );

    /// The handle inside, which is asked something.
    fn inside(&self) -> &dyn Handle;

    /// The same, for what does not end operations.
    fn inside_mut(&mut self) -> &mut dyn Handle;

    /// The numbers inside of those operations that are in flight under these.
    fn inside_ids(&self, ids: &Range<u64>) -> Vec<Range<u64>> {
        vec![ids.clone()]
    }

    /// Those of these operations are given up that wait here.
    fn give_up(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        let _ = (cx, ids);
    }

    /// An instant has come that may have been waited for here.
    fn expired(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }
}

impl<A: FilterHandle> Handle for A {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        self.begin(cx, id, op);
    }

    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        self.give_up(cx, ids);
        for ids in self.inside_ids(ids) {
            self.let_act(cx, |inside, cx| inside.cancel(cx, &ids));
        }
    }

    fn event(&mut self, cx: &mut Context<'_>, node: HandleId, slot: u32, event: HandleEvent<'_>) {
        self.let_act(cx, |inside, cx| inside.event(cx, node, slot, event));
    }

    fn recall(&mut self) -> Option<Recall> {
        self.inside_mut().recall()
    }

    fn resume(&mut self, cx: &mut Context<'_>) {
        self.let_act(cx, |inside, cx| inside.resume(cx));
        self.expired(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.let_act(cx, |inside, cx| inside.leave(cx));
    }

    fn has_left(&self) -> bool {
        self.inside().has_left()
    }
}
