//! What a switch tells: events of the machine as lines of the log, and N_Port_IDs to be kept.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use ::io::ether::Place;
use ::io::ether::fast_path::FastPathCounters;
use fc::fabric::zones::{MemberIdentifier, Zones};
use fc::fabric::{DropReason, FcfStatistics, LogoutReason, PortCounters, SwitchEvent, SwitchLogin};
use fc::wire::ethernet::Mac;
use runtime::n_port::FrameLosses;
use scsi::medium::Now;
use scsi::violation::Violation;

use super::core::number;
use super::ids::IdList;
use super::ids_keeper::IdsKeeper;
use super::machine::SwitchMachine;
use super::ports::CorePorts;

impl SwitchMachine {
    /// Tells what has happened, and once a minute what was lost.
    pub(super) fn report(&mut self, now: Now, ports: &mut CorePorts) {
        while let Some(event) = self.switch.poll() {
            self.take(now, event);
        }
        if self.ids_pace.take_due(now) {
            self.write_ids(now);
        }
        self.lldp.tell_changes(now);
        if self.errors_due <= now {
            self.read_carrier_errors(now, ports);
        }
        if self.logins.is_due(now) {
            self.sweep(now, ports);
        }
    }

    fn take(&mut self, now: Now, event: SwitchEvent) {
        match event {
            SwitchEvent::LoggedIn(login) => {
                self.fast_path.forget(self.next_version, login.fc_id);
                self.log_login(&login);
            }
            SwitchEvent::LoggedOut(login, why) => {
                self.fast_path.forget(self.next_version, login.fc_id);
                self.log_logout(&login, why);
            }
            SwitchEvent::LoginRejected(rejected) => {
                let (place, from, why) = (&rejected.place, rejected.from, rejected.why());
                let wwpn = rejected.wwpn.map(|wwpn| format!("{wwpn} "));
                let (wwpn, request) = (wwpn.unwrap_or_default(), rejected.request);
                tracing::warn!("{place}: {request} of {wwpn}({from}) is rejected: {why}");
            }
            SwitchEvent::IdsChanged => self.ids_pace.changed(now),
            SwitchEvent::Remark {
                place,
                from,
                violation,
            } => self.tell_violation(now, place, from, violation),
            SwitchEvent::Takeover { other } => {
                tell_takeover(other);
                // It was read while this was the standby; what came after that is read now.
                self.with_ids(|ids| {
                    ids.watch(false);
                    ids.read();
                });
            }
            SwitchEvent::StoodDown { other, place, from } => {
                tracing::warn!(
                    "{place}: another switch of the same names is active at {other}, as {from} \
                     says: this one is its standby now"
                );
                self.ids_pace.cancel();
                self.with_ids(|ids| ids.watch(true));
            }
        }
    }

    fn write_ids(&mut self, now: Now) {
        if let Some(keeper) = &self.ids {
            let ids: IdList = self.switch.ids().collect();
            self.ids_pace.written(now, ids.len());
            keeper.write(ids);
        }
    }

    fn with_ids(&self, act: impl FnOnce(&IdsKeeper)) {
        if let Some(ids) = &self.ids {
            act(ids);
        }
    }

    /// Tells that a peer broke a rule.
    pub(super) fn tell_violation(
        &self,
        now: Now,
        place: impl fmt::Display,
        from: Mac,
        violation: Violation,
    ) {
        if let Some(line) = self.journal.tell(now, from, violation) {
            tracing::warn!("{place}: {line}");
        }
    }

    /// Has ports keep the N_Port_IDs that the other switch has written down in the same place.
    /// Those that only this one knows stay. An active one writes the whole list: its own may have
    /// taken the place of the one that was read.
    pub(super) fn restore_ids(&mut self, mut ids: IdList) {
        let known: HashSet<_> = ids.iter().map(|(wwpn, _)| *wwpn).collect();
        let own = self.switch.ids();
        ids.extend(own.filter(|(wwpn, _)| !known.contains(wwpn)));
        self.switch.restore_ids(&ids);
        if self.switch.is_active() {
            self.with_ids(|keeper| keeper.write(self.switch.ids().collect()));
        }
    }

    /// Tells which zones were read.
    pub(super) fn tell_zones(&self) {
        match self.zones.active() {
            Some(name) => tracing::info!("the zones were read again: zone set {name} is active"),
            None if self.zones.permits() => {
                tracing::info!("the zones were read again: all ports see each other");
            }
            None => tracing::warn!(
                "the zones were read again: no zone set is active, so no port sees another"
            ),
        }
        self.tell_absent_ports();
    }

    /// Has RLS tell what interfaces have counted. The kernel is asked by another thread, so these
    /// are the counts of the time before; nothing wakes the switch for them.
    fn read_carrier_errors(&mut self, now: Now, ports: &mut CorePorts) {
        self.errors_due = now + ERRORS_READ;
        ports.tell(&self.board);
        for at in 0..self.places.len() {
            let facts = self.board.at(at);
            let mut errors = facts.carrier.unwrap_or_default();
            let damaged = facts.counters.dropped(DropReason::Crc);
            let damaged = u32::try_from(damaged).unwrap_or(u32::MAX);
            errors.invalid_crcs = errors.invalid_crcs.saturating_add(damaged);
            self.switch.set_carrier_errors(number(at), errors);
        }
    }

    fn log_login(&mut self, login: &SwitchLogin) {
        if self.logins.tells(usize::from(login.port.0)) {
            let SwitchLogin {
                place,
                wwpn,
                fc_id,
                enode,
                ..
            } = login;
            tracing::info!("{place}: {wwpn} ({enode}) has logged in as {fc_id}");
        }
    }

    fn log_logout(&mut self, login: &SwitchLogin, why: LogoutReason) {
        if self.logins.tells(usize::from(login.port.0)) {
            let SwitchLogin { place, wwpn, .. } = login;
            let why = reason(why);
            tracing::info!("{place}: {wwpn} is logged out: {why}");
        }
    }

    fn sweep(&mut self, now: Now, ports: &mut CorePorts) {
        for line in self.journal.sweep(now) {
            tracing::warn!("{line}");
        }
        for (at, count) in self.logins.sweep(now) {
            let place = &self.places[at];
            tracing::info!("{place}: {count} more logins and logouts within a minute");
        }
        ports.tell(&self.board);
        for (at, (lost, congested)) in self.told.iter_mut().enumerate() {
            let place = &self.places[at];
            let facts = self.board.at(at);
            let own = self.switch.counted(number(at));
            let frames = own.map_or(0, |own| own.dropped(DropReason::Congested));
            let frames = frames + facts.counters.dropped(DropReason::Congested);
            tell_congestion(place, frames.saturating_sub(*congested));
            *congested = frames;
            if let Some(now) = facts.lost() {
                tell_losses(place, &now, &std::mem::replace(lost, now));
            }
        }
    }

    /// Warns of members of zones that are ports of a switch, but none of this one.
    pub(super) fn tell_absent_ports(&self) {
        let places: Vec<_> = self.switch.counters().map(|(_, place, _)| place).collect();
        for place in absent_ports(&self.zones, &places).take(UNSEEN_MAX) {
            tracing::warn!(
                "zones: port:{place} is no port of this switch, so nothing was ever seen there: \
                 write the PLACE as the switch was given it"
            );
        }
    }

    /// Lists members of zones that are not there.
    fn tell_unseen(&self) {
        self.tell_absent_ports();
        let members = unseen(&self.zones, self.switch.logins());
        for member in members.iter().take(UNSEEN_MAX) {
            tracing::info!("zones: {member} is not logged in");
        }
        let more = members.len().saturating_sub(UNSEEN_MAX);
        if more > 0 {
            tracing::info!("zones: nor are {more} more");
        }
    }

    /// Tells what was forwarded and dropped at each port, since the start.
    pub(super) fn tell_counters(&mut self, ports: &mut CorePorts) {
        ports.tell(&self.board);
        for (at, place) in self.places.iter().enumerate() {
            let in_kernel = self.fast_path.counters(at);
            let counters = self.counters(at);
            tracing::info!("{place}: {}", Counted(&counters, in_kernel));
            for pair in counters.pairs() {
                let (s_id, d_id) = (pair.s_id, pair.d_id);
                let (frames, reason) = (pair.frames, pair.reason.name());
                tracing::info!("{place}: from {s_id} to {d_id}: {frames} dropped ({reason})");
            }
        }
        tracing::info!("{}", FipCounted(self.switch.fip_statistics()));
        self.tell_unseen();
        self.lldp.tell_all();
        for (at, place) in self.places.iter().enumerate() {
            let lost = self.board.at(at).lost();
            if let Some(lost) = lost.as_ref().and_then(FrameLosses::told) {
                tracing::info!("{place}: frames lost: {lost}");
            }
        }
    }
}

/// The members of the active zones that nothing logged in has, in order. The time that it takes
/// grows with members and logins, and not with their product.
pub(super) fn unseen<'a>(
    zones: &'a Zones,
    logins: impl Iterator<Item = &'a SwitchLogin>,
) -> Vec<&'a MemberIdentifier> {
    let mut there = HashSet::new();
    for login in logins {
        there.extend([
            MemberIdentifier::Port(login.wwpn),
            MemberIdentifier::Node(login.wwnn),
            MemberIdentifier::Id(login.fc_id),
            MemberIdentifier::Place(login.place.clone()),
        ]);
    }
    zones
        .members()
        .filter(|member| !there.contains(*member))
        .collect()
}

/// The places that the active zones have as members (`port:`), and where the switch has no port.
pub(super) fn absent_ports<'a>(
    zones: &'a Zones,
    places: &'a [&str],
) -> impl Iterator<Item = &'a str> {
    let members = zones.members().filter_map(|member| match member {
        MemberIdentifier::Place(place) => Some(&**place),
        _ => None,
    });
    members.filter(|place| !places.contains(place))
}

/// Logs that more frames which came in at a port found no room at their egress.
fn tell_congestion(place: &Place, more: u64) {
    if more > 0 {
        tracing::warn!(
            "{place}: {more} frames from here were dropped: the port that they go to is too slow"
        );
    }
}

/// Logs what was lost at a port since it was looked at before.
fn tell_losses(place: &Place, now: &FrameLosses, before: &FrameLosses) {
    if let Some(lost) = now.told_since(before) {
        tracing::warn!("{place}: frames lost: {lost}");
    }
}

fn tell_takeover(other: Option<Mac>) {
    match other {
        Some(other) => tracing::warn!(
            "the other switch of this fabric (first port {other}) is gone: this one is active now"
        ),
        None => tracing::info!("no other switch of these names was heard: this one is active now"),
    }
}

/// How often the errors that interfaces count are read, at the most.
const ERRORS_READ: Duration = Duration::from_secs(1);

/// Members of zones that are listed at the most: the log has room for 1,024 lines.
const UNSEEN_MAX: usize = 256;

/// What came in at a port, in one line.
struct Counted<'a>(&'a PortCounters, FastPathCounters);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(counters, in_kernel) = self;
        // The core of an egress may tell what did not leave before that of the ingress tells more.
        let frames = counters.forwarded_frames;
        let frames = frames.saturating_sub(counters.undelivered_frames) + in_kernel.frames;
        let bytes = counters.forwarded_bytes;
        let bytes = bytes.saturating_sub(counters.undelivered_bytes) + in_kernel.bytes;
        let taken = counters.taken;
        write!(
            f,
            "{frames} frames of {bytes} bytes forwarded, {taken} for the switch itself"
        )?;
        if in_kernel.frames > 0 {
            write!(f, ", {} forwarded in the kernel", in_kernel.frames)?;
        }
        let dropped = |reason: &DropReason| (counters.dropped(*reason), reason.name());
        let dropped = DropReason::ALL.iter().map(dropped);
        dropped
            .filter(|(frames, _)| *frames > 0)
            .try_for_each(|(frames, reason)| write!(f, ", {frames} dropped ({reason})"))
    }
}

/// What was said by FIP, in one line.
struct FipCounted(FcfStatistics);

impl fmt::Display for FipCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(counted) = self;
        write!(
            f,
            "FIP: {} messages sent, {} received, {} of them against a rule, {} unread as their \
             sender sent too many; {} logins rejected, {} ended by silence",
            counted.sent,
            counted.received,
            counted.refused,
            counted.dropped,
            counted.rejected,
            counted.silent
        )
    }
}

/// In words.
const fn reason(why: LogoutReason) -> &'static str {
    match why {
        LogoutReason::LoggedOut => "it has logged out",
        LogoutReason::Restarted => "its host logs in anew",
        LogoutReason::EnodeSilent => "its host is silent",
        LogoutReason::Silent => "it is silent",
        LogoutReason::LinkDown => "the link is down",
        LogoutReason::SmallerMtu => "the MTU of the port is smaller now",
        LogoutReason::ShutDown => "the switch ends",
        LogoutReason::StoodDown => "another switch is active",
    }
}
