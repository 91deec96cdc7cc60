//! Volumes around one other volume, which they leave as it is but for one thing, and their handles.

use std::fmt;
use std::io;
use std::ops::Range;

use ::io::memory::Recall;
use scsi::medium::{MediumOp, MediumResult, Now, Traits};
use scsi::statistics::SpaceUsage;
use slab::Slab;

use crate::child::{Child, in_flight};
use crate::identity::Details;
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

/// What a filter does to each operation on its way in, and to its result on the way out.
pub(crate) trait Interceptor {
    /// What is kept of an operation that is inside.
    type Note;

    /// What is done inside for an operation; or its result, where nothing is.
    fn enter(
        &mut self,
        now: Now,
        op: MediumOp<BlockLease>,
    ) -> Result<(MediumOp<BlockLease>, Self::Note), MediumResult<BlockLease>>;

    /// The result of an operation whose result inside is this.
    fn leave(
        &mut self,
        now: Now,
        note: Self::Note,
        result: MediumResult<BlockLease>,
    ) -> MediumResult<BlockLease>;
}

/// The handle of a filter by its [`Interceptor`].
pub(crate) struct Intercepted<I: Interceptor> {
    inside: Child,
    interceptor: I,
    /// With the ids of the operations.
    pending: Slab<(u64, I::Note)>,
}

impl<I: Interceptor> Intercepted<I> {
    pub(crate) fn attach(
        inside: &dyn Volume,
        core: &CoreContext,
        interceptor: I,
    ) -> io::Result<Self> {
        Ok(Self {
            inside: Child::attach(inside, core)?,
            interceptor,
            pending: Slab::new(),
        })
    }

    fn drain(&mut self, cx: &mut Context<'_>) {
        while let Some((slot, result)) = self.inside.next() {
            if let Some((id, note)) = self.pending.try_remove(slot as usize) {
                cx.done(id, self.interceptor.leave(cx.now, note, result));
            }
        }
    }
}

impl<I: Interceptor> FilterHandle for Intercepted<I> {
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        match self.interceptor.enter(cx.now, op) {
            Ok((op, note)) => {
                let slot = self.pending.insert((id, note));
                self.inside.submit(cx, slot as u64, op);
                self.drain(cx);
            }
            Err(result) => cx.done(id, result),
        }
    }

    fn let_act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        self.inside.act(cx, act);
        self.drain(cx);
    }

    fn inside_ids(&self, ids: &Range<u64>) -> Vec<Range<u64>> {
        in_flight(&self.pending, ids, |(id, _)| *id)
    }

    fn inside(&self) -> &dyn Handle {
        self.inside.handle()
    }

    fn inside_mut(&mut self) -> &mut dyn Handle {
        self.inside.handle_mut()
    }
}
