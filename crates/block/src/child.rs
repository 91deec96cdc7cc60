//! A handle inside another one.

use std::io;
use std::ops::Range;

use ::io::memory::Recall;
use scsi::medium::{MediumOp, MediumResult};
use slab::Slab;

use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};

/// Translates the range `ids` of our operation ids to the ids used on the child volume.
pub(crate) fn in_flight<T>(
    pending: &Slab<T>,
    ids: &Range<u64>,
    id: impl Fn(&T) -> u64,
) -> Vec<Range<u64>> {
    let pending = pending.iter().filter(|(_, one)| ids.contains(&id(one)));
    pending
        .map(|(slot, _)| slot as u64..slot as u64 + 1)
        .collect()
}

/// A handle whose results come to the one around it, before anybody else sees them.
///
/// The caller that lets it act takes what it has done afterwards, by [`Self::next`], until there is
/// no more: nothing else calls for it.
pub(crate) struct Child {
    handle: Box<dyn Handle>,
    /// Its own, and those of what is inside it.
    nodes: Range<HandleId>,
    done: Vec<(u64, MediumResult<BlockLease>)>,
}

impl Child {
    pub(crate) fn attach(volume: &dyn Volume, core: &CoreContext) -> io::Result<Self> {
        let first = core.next_node();
        let handle = volume.attach(core)?;
        Ok(Self {
            handle,
            nodes: first..core.next_node(),
            done: Vec::new(),
        })
    }

    /// Lets the handle act.
    pub(crate) fn act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        act(&mut *self.handle, &mut cx.inside(&mut self.done));
    }

    /// The handle itself, to be asked something.
    pub(crate) fn handle(&self) -> &dyn Handle {
        &*self.handle
    }

    /// The same, for what ends no operations.
    pub(crate) fn handle_mut(&mut self) -> &mut dyn Handle {
        &mut *self.handle
    }

    pub(crate) fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        self.handle.submit(&mut cx.inside(&mut self.done), id, op);
    }

    pub(crate) fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        self.handle.cancel(&mut cx.inside(&mut self.done), ids);
    }

    /// Whether what was started as `node` is this one's.
    pub(crate) fn owns(&self, node: HandleId) -> bool {
        self.nodes.contains(&node)
    }

    pub(crate) fn event(
        &mut self,
        cx: &mut Context<'_>,
        node: HandleId,
        slot: u32,
        event: HandleEvent<'_>,
    ) {
        let mut cx = cx.inside(&mut self.done);
        self.handle.event(&mut cx, node, slot, event);
    }

    pub(crate) fn resume(&mut self, cx: &mut Context<'_>) {
        self.handle.resume(&mut cx.inside(&mut self.done));
    }

    pub(crate) fn leave(&mut self, cx: &mut Context<'_>) {
        self.handle.leave(&mut cx.inside(&mut self.done));
    }

    pub(crate) fn has_left(&self) -> bool {
        self.handle.has_left()
    }

    pub(crate) fn recall(&mut self) -> Option<Recall> {
        self.handle.recall()
    }

    /// Something that it has done, in any order.
    pub(crate) fn next(&mut self) -> Option<(u64, MediumResult<BlockLease>)> {
        self.done.pop()
    }
}
