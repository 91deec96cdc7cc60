//! A switch on a thread of its own: what it is asked and told there, and how it ends.

use std::sync::Arc;

use fc::fabric::zones::Zones;
use fc::fabric::{DropReason, SwitchLogin};
use tempfile::TempDir;

use super::super::options::{Place, SwitchOptions, Zoning};
use super::super::{OpenSwitch, SwitchError, SwitchPortSurvey, SwitchSurvey};
use super::enode::Enode;

fn options(folder: &TempDir) -> SwitchOptions {
    let place = |name| Place::Cable(folder.path().join(name));
    let mut options = SwitchOptions::new(["a", "b"].map(place).into());
    options.zoning = Zoning::Given(Arc::new(Zones::open()));
    options
}

fn dropped(survey: &SwitchSurvey, reason: DropReason) -> u64 {
    let of = |port: &SwitchPortSurvey| {
        let mut dropped = port.dropped.iter();
        dropped
            .find(|(of, _)| *of == reason)
            .map(|(_, frames)| *frames)
    };
    survey.ports.iter().filter_map(of).sum()
}

#[test]
fn it_tells_who_is_logged_in_and_what_was_forwarded_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder);
    let switch = OpenSwitch::open(&options).unwrap().start().unwrap();
    assert_eq!(switch.ports().len(), 2);
    let mut hosts = [0, 1].map(|at| {
        let mut host = Enode::plug(&options.places[at], None);
        host.log_in();
        host
    });
    let [one, other] = &mut hosts;
    one.send(other.fc_id, b"seen");
    assert_eq!(other.next_frame(), (one.fc_id, b"seen".to_vec()));
    let survey = switch.survey().unwrap();
    let ids: Vec<_> = survey
        .logins
        .iter()
        .map(|login: &SwitchLogin| login.fc_id)
        .collect();
    assert_eq!(ids, [one.fc_id, other.fc_id]);
    assert!(survey.is_active && survey.ports.iter().all(|port| port.is_up));
    assert_eq!(
        survey.switch_name.to_string(),
        switch.ports()[0].switch_name
    );
    assert_eq!((survey.ports[0].frames, survey.ports[1].frames), (1, 0));

    switch.set_zones(Arc::new(Zones::closed()));
    one.send(other.fc_id, b"not seen");
    // What is answered later was read later.
    one.solicit();
    assert_eq!(dropped(&switch.survey().unwrap(), DropReason::Zoned), 1);
    assert!(switch.stop().is_none());
    assert!(switch.has_ended() && switch.survey().is_none());
    assert!(switch.stop().is_none(), "nothing is left to be stopped");
}

#[test]
fn ports_that_are_open_are_nobody_elses_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let open = OpenSwitch::open(&options(&folder)).unwrap();
    let _host = Enode::plug(&options(&folder).places[0], None);
    let refused = OpenSwitch::open(&options(&folder)).unwrap_err();
    assert!(
        refused.to_string().contains("both of its ends are in use"),
        "{refused}"
    );
    drop(open);
}

#[test]
fn too_few_descriptors_are_told_with_the_way_out() {
    let cause = std::io::Error::from(rustix::io::Errno::MFILE);
    let told = SwitchError::from(cause).to_string();
    assert!(
        told.ends_with("raise the limit (ulimit -n, or LimitNOFILE=)"),
        "{told}"
    );
}
