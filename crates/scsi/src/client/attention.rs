//! What a unit announces has changed (SPC-5 §5.14).
//!
//! Nothing is asked of a unit that may be another one, or have other blocks, or another cache,
//! before it has said again what it is. What it is asked for at that time ends after it has.

use super::answer::{AttentionKind, is_reset, what_changed};
use super::identify::Identify;
use super::{Client, ClientOutput, ClientStage};
use crate::medium::Lease;

impl<L: Lease> Client<L> {
    pub(super) fn attention(&mut self, code: u16) {
        self.check(code);
        match what_changed(code) {
            AttentionKind::Reset | AttentionKind::Unit => self.look_again(is_reset(code)),
            AttentionKind::Fenced | AttentionKind::Other => {}
        }
    }

    /// The same while the unit is asked, which begins again by itself.
    pub(super) fn attention_while_asking(&mut self, code: u16) {
        self.check(code);
        let wishes = self.wishes();
        if let ClientStage::Identifying(identify) = &mut self.stage
            && is_reset(code)
        {
            identify.want(wishes);
        }
    }

    /// What is lost by it: a volatile cache, or our registration.
    fn check(&mut self, code: u16) {
        match what_changed(code) {
            AttentionKind::Reset => {
                let lost = self.book.reset();
                self.outputs.extend(lost.then_some(ClientOutput::CacheLost));
            }
            AttentionKind::Fenced if self.wishes.key.is_some() => {
                self.registered = None;
                self.book.fence();
                self.outputs.push_back(ClientOutput::Fenced);
                if let ClientStage::Identifying(identify) = &mut self.stage {
                    identify.fence();
                }
            }
            _ => {}
        }
    }

    /// A write was refused as the unit is protected; it may not be known as such yet.
    pub(super) fn check_protection(&mut self) {
        if self
            .facts
            .as_ref()
            .is_some_and(|facts| !facts.traits.read_only)
        {
            self.look_again(false);
        }
    }

    /// Asks the unit again what it is, and for what is wanted of it after a reset.
    fn look_again(&mut self, reset: bool) {
        let wishes = reset.then(|| self.wishes());
        match &mut self.stage {
            ClientStage::Ready => {
                self.identify(Identify::new(wishes.unwrap_or_default(), self.registered));
            }
            ClientStage::Identifying(identify) => identify.doubt(wishes),
            ClientStage::Away | ClientStage::Refused => {}
        }
    }
}
