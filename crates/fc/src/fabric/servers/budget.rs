//! How much a port may ask.
//!
//! A port that joins a large fabric asks once for all ports and once for each, and is silent then.
//! One that never stops would hold the core on which logins are made, so what it asks is counted in
//! time, and rejected as "busy" while it has used up more than its share. Rejections are counted
//! too: beyond those there is no answer.
//!
//! The share is that of an ENode, however many N_Port_IDs it has: it could log in ever further
//! ones. And an ENode is only an address that a sender has made up, so all behind one port of the
//! switch have a share together, which outlasts their logins.

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::medium::Now;

use crate::fabric::PortNumber;
use crate::fabric::login::{ENDINGS, EnodeKey};
use crate::fip::budget::TokenBucket;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// It is answered.
    Served,
    /// It is rejected as busy.
    Refused,
    /// It is not answered.
    Dropped,
}

/// What ENodes may still ask.
#[derive(Debug, Default)]
pub(super) struct RequestBudgets {
    enodes: BTreeMap<EnodeKey, EnodeBudget>,
    /// Of ports of the switch. They stay.
    ingresses: BTreeMap<PortNumber, IngressBudget>,
}

#[derive(Debug, Default)]
struct EnodeBudget {
    requests: TimeBudget,
    /// VN_Ports that it has.
    ports: usize,
}

#[derive(Debug, Default)]
struct IngressBudget {
    requests: TimeBudget,
    refusals: TimeBudget,
    /// Logins to the fabric that end.
    endings: TokenBucket,
}

/// A token bucket, in time.
#[derive(Clone, Copy, Debug, Default)]
struct TimeBudget {
    /// When it is full again.
    full_at: Now,
}

impl TimeBudget {
    fn has_some(self, now: Now) -> bool {
        self.full_at < now + BURST
    }

    fn spend(&mut self, now: Now, cost: Duration) {
        self.full_at = self.full_at.max(now) + cost;
    }
}

impl RequestBudgets {
    /// An ENode has one more VN_Port.
    pub(super) fn join(&mut self, enode: EnodeKey) {
        self.enodes.entry(enode).or_default().ports += 1;
    }

    /// An ENode has one VN_Port less.
    pub(super) fn leave(&mut self, enode: EnodeKey) {
        if let Some(budget) = self.enodes.get_mut(&enode) {
            budget.ports -= 1;
            if budget.ports == 0 {
                self.enodes.remove(&enode);
            }
        }
    }

    pub(super) fn records(&self) -> usize {
        self.enodes.len() + self.ingresses.len()
    }

    /// Takes what a request costs, if there is something left.
    pub(super) fn take(&mut self, now: Now, enode: EnodeKey) -> Allowance {
        let ingress = self.ingresses.entry(enode.0).or_default();
        let Some(budget) = self.enodes.get_mut(&enode) else {
            return Allowance::Dropped;
        };
        if budget.requests.has_some(now) && ingress.requests.has_some(now) {
            budget.requests.spend(now, REQUEST);
            ingress.requests.spend(now, REQUEST / ENODES);
            Allowance::Served
        } else if ingress.refusals.has_some(now) {
            ingress.refusals.spend(now, REFUSAL);
            Allowance::Refused
        } else {
            Allowance::Dropped
        }
    }

    /// Takes what the end of a login to the fabric costs, if there is something left.
    pub(super) fn take_ending(&mut self, now: Now, port: PortNumber) -> bool {
        let ingress = self.ingresses.entry(port).or_default();
        ingress.endings.take(now, &ENDINGS)
    }

    /// Takes what a request has cost besides, in ports, entries or 64 bytes that were looked at.
    pub(super) fn charge(&mut self, enode: EnodeKey, steps: usize) {
        let cost = STEP * u32::try_from(steps).unwrap_or(u32::MAX);
        if let Some(budget) = self.enodes.get_mut(&enode) {
            budget.requests.full_at += cost;
        }
        let ingress = self.ingresses.entry(enode.0).or_default();
        ingress.requests.full_at += cost / ENODES;
    }
}

/// 4,000 requests a second, and 8,000 at once: GFF_ID of as many ports as a fabric has.
const REQUEST: Duration = Duration::from_micros(250);

/// 64,000 ports looked at in a second.
const STEP: Duration = Duration::from_micros(16);

/// What may be used up at once.
const BURST: Duration = Duration::from_secs(2);

/// The ENodes behind a port of the switch may ask together what so many of them may.
const ENODES: u32 = 8;

/// 1,000 rejections a second, and 2,000 at once.
const REFUSAL: Duration = Duration::from_millis(1);
