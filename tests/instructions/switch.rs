//! A switch that forwards full frames: from where a frame came in to the slot where it leaves.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{PortNumber, Switch, SwitchConfig, Verdict};
use fc::tests::{EnodeFrames, fcf_mac, switch_of};
use fc::wire::ethernet::Mac;
use fc::wire::frame::{FrameType, RCtl};
use fc::wire::names::FcId;

use super::{COMMANDS, Counts};

const PAYLOAD: [u8; 2112] = [7; 2112];

/// A switch of two ports with as many pairs of hosts, one of each pair at either port.
pub(crate) fn forward(pairs: u16) {
    let config = SwitchConfig {
        zones: Arc::new(Zones::open()),
        ..SwitchConfig::default()
    };
    let mut switch = switch_of(&config, 2);
    for number in 0..2 * pairs {
        log_in(&mut switch, number);
    }
    let ids: Vec<FcId> = switch.logins().map(|login| login.fc_id).collect();
    assert_eq!(ids.len(), 2 * usize::from(pairs));
    let frames: Vec<Vec<u8>> = (0..COMMANDS as usize)
        .map(|number| {
            let pair = 2 * (number * 31 % usize::from(pairs));
            full_frame(ids[pair], ids[pair + 1])
        })
        .collect();
    let now = Duration::from_mins(1);
    let mut slot = vec![0; frames[0].len()];
    Counts::Yes.run(|| {
        for frame in &frames {
            let verdict = switch.receive(now, PortNumber(0), black_box(frame));
            let Verdict::Forward(way) = verdict else {
                panic!("{verdict:?}");
            };
            way.write(frame, black_box(&mut slot));
        }
    });
}

/// A host by its number, at one of both ports.
fn host(number: u16) -> EnodeFrames {
    let [high, low] = number.to_be_bytes();
    EnodeFrames::new(Mac([2, 0, 0, 1, high, low]), fcf_mac((number % 2) as u8))
}

fn log_in(switch: &mut Switch, number: u16) {
    // Slowly, as what one port takes of FIP in a second is limited.
    let now = Duration::from_millis(10 * u64::from(number));
    switch.receive(now, PortNumber(number % 2), &host(number).flogi(1));
    while switch.poll().is_some() {}
}

fn full_frame(from: FcId, to: FcId) -> Vec<u8> {
    let kind = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
    host(0).fcoe(kind, (from, to), 1, &PAYLOAD)
}
