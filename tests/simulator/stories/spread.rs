//! One unit over several sessions, which are cut one by one while the others go on: nothing of a
//! lost one lands after what another one was told since.

use std::time::Duration;

use scsi::medium::Extent;

use super::remote_units::{PATIENCE, Use};
use crate::lab::Lab;
use crate::seeds::{with_seeds, with_transports};

/// The network drops one of the newest connections, or the user believes so while what is on its
/// way may still arrive, whatever became of the session since.
fn cut_one(lab: &mut Lab, user: usize, sessions: u16) {
    let (way, arrives) = (lab.rng.below(4), lab.rng.one_in(2));
    let wires = lab.world.wires_of(user);
    let newest = wires.len().min(2 * usize::from(sessions));
    if newest == 0 {
        return;
    }
    let at = wires.len() - 1 - lab.rng.below(newest);
    match way {
        0 => wires[at].cut(),
        1 => wires[at].reset(),
        _ => {
            wires[at].reset();
            wires[at].stall(true);
        }
    }
    for (_, wire) in wires
        .iter()
        .enumerate()
        .filter(|(n, _)| arrives && *n != at)
    {
        wire.stall(false);
    }
}

fn cut_off(seed: u64, sessions: u16, replacement: Duration) {
    let mut story = Use::of(seed, sessions, replacement);
    story.may_fail = replacement < PATIENCE;
    let often = *story.lab.rng.pick(&[40, 150, 600]);
    story.run(3000, often, |lab, user| cut_one(lab, user, sessions));
    story.finish();
}

#[test]
fn two_sessions_lose_nothing_whichever_is_cut() {
    with_transports("two sessions that are cut off", 60, |seed| {
        cut_off(seed, 2, PATIENCE);
    });
}

#[test]
fn several_sessions_lose_nothing_whichever_is_cut() {
    with_transports("several sessions that are cut off", 40, |seed| {
        cut_off(seed, 3 + (seed % 2) as u16, PATIENCE);
    });
}

#[test]
fn sessions_that_stay_away_fail_and_lose_nothing() {
    with_transports("sessions that stay away", 40, |seed| {
        cut_off(seed, 1 + (seed % 4) as u16, SHORT);
    });
}

/// A write by the first of the sessions, which is then away with that on its way; `None` if it
/// never was as a whole.
fn write_on_its_way(seed: u64, sessions: u16, replacement: Duration) -> Option<Use> {
    let mut story = Use::of(seed, sessions, replacement);
    story.may_fail = true;
    story.ask_write(PLACE);
    story.until(Use::is_idle);
    story.ask_write(PLACE);
    let old = story.wires()[0].clone();
    story.until(|story| old.in_flight() > 560 || story.is_idle());
    (!story.is_idle()).then(|| {
        old.reset();
        old.stall(true);
        story
    })
}

/// Whether it has connected more than once.
fn is_back(story: &Use) -> bool {
    story.wires().len() > 1
}

/// The user is told that a write has failed, and writes again: by then the first one is still on
/// its way, on a session that has not come back.
#[test]
fn a_write_that_was_given_up_never_lands_after_the_next_one() {
    with_transports("a write that was given up", 60, |seed| {
        let Some(mut story) = write_on_its_way(seed, 2, SHORT) else {
            return;
        };
        story.until(Use::is_idle);
        // It comes back late, while the other session has nothing in its way.
        story.until(is_back);
        story.lab.stall(0, 1..2, true);
        story.ask_write(PLACE);
        story.until(Use::is_idle);
        story.lab.stall(0, ..1, false);
        story.run(1000, usize::MAX, |_, _| {});
        story.finish();
    });
}

/// Nor by another core, which has sessions of its own.
#[test]
fn what_one_core_gave_up_never_lands_after_what_another_one_was_told() {
    with_transports("a write that was given up by a core", 60, |seed| {
        let sessions = 1 + (seed % 2) as u16;
        let Some(mut story) = write_on_its_way(seed, sessions, SHORT) else {
            return;
        };
        story.until(Use::is_idle);
        story.go_to_another_core();
        story.ask_write(PLACE);
        story.until(|story| {
            story.lab.stall(0, 1.., true);
            story.is_idle()
        });
        let can_land = !story.is_acknowledged(PLACE);
        assert!(can_land, "the first one can still land");
        story.lab.stall(0, .., false);
        (0..2000).for_each(|_| story.step());
        story.ask_write(PLACE);
        story.until(Use::is_idle);
        assert!(story.is_acknowledged(PLACE), "the first core is back");
        story.finish();
    });
}

/// To come back takes none of the memory of the core.
#[test]
fn a_session_comes_back_with_all_buffers_in_use() {
    with_transports("sessions without buffers", 20, |seed| {
        let Some(mut story) = write_on_its_way(seed, 2, SHORT) else {
            return;
        };
        story.until(is_back);
        story.lab.stall(0, 1..2, true);
        (0..500).for_each(|_| story.step());
        let world = &story.lab.world;
        let one = world.buffer(0, 512);
        let _held: Vec<_> = [1 << 18, 1 << 14, 1 << 12, 512]
            .into_iter()
            .flat_map(|len| std::iter::from_fn(move || world.buffer(0, len)))
            .collect();
        drop(one);
        story.may_fail = false;
        story.ask_write(PLACE);
        story.until(Use::is_idle);
    });
}

/// The session whose write is on its way comes back to another portal group, where that does not
/// end it: what is asked for there fails, until the session is in the first one again. By TCP
/// alone: over iSER a CRC would tell that its answer was changed.
fn move_with_a_write(seed: u64, replacement: Duration) {
    let sessions = 1 + (seed % 2) as u16;
    let Some(mut story) = write_on_its_way(seed, sessions, replacement) else {
        return;
    };
    story.until(is_back);
    story.lab.world.pace.pieces = false;
    story.lab.world.wires_of(0)[1].through(|bytes| {
        let tag = b"TargetPortalGroupTag=";
        let mut bytes = bytes.to_vec();
        if let Some(at) = bytes.windows(tag.len()).position(|there| there == tag) {
            bytes[at + tag.len()] = b'2';
        }
        bytes
    });
    story.until(Use::is_idle);
    story.ask_write(PLACE);
    story.until(Use::is_idle);
    let can_land = !story.is_acknowledged(PLACE);
    assert!(can_land, "the first one can still land");
    story.lab.world.wires_of(0)[1].reset();
    (0..500).for_each(|_| story.step());
    story.ask_write(PLACE);
    story.until(Use::is_idle);
    assert!(story.is_acknowledged(PLACE), "it is back");
    story.finish();
}

#[test]
fn another_portal_group_ends_no_write_that_was_given_up() {
    with_seeds("a session that moves late", 30, |seed| {
        move_with_a_write(seed, SHORT);
    });
}

#[test]
fn another_portal_group_ends_no_write_under_way() {
    with_seeds("a session that moves", 30, |seed| {
        move_with_a_write(seed, Duration::from_secs(1));
    });
}

/// Less than the pause before a second attempt to connect.
const SHORT: Duration = Duration::from_millis(20);

/// What is written when a session is lost.
const PLACE: Extent = Extent::new(3, 1);
