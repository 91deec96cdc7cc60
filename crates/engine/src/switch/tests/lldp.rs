//! A switch tells its neighbours by LLDP that a link is to carry FCoE without loss.

use std::time::Duration;

use fc::lldp::{DcbSettings, Lldp, LldpConfig};
use fc::wire::ethernet::Mac;
use scsi::medium::Now;

use super::super::options::LldpMode;
use super::carry::Running;
use super::enode::Enode;

/// The agent of a host, which takes what the switch has.
fn agent() -> Lldp {
    let config = LldpConfig {
        mode: LldpMode::Listen,
        mac: Mac([2, 0, 0, 0, 0, 9]),
        port_id: "host".to_owned(),
        port_description: String::new(),
        system_name: String::new(),
        system_description: String::new(),
        dcb: Some(DcbSettings::fcoe(3, true)),
    };
    let mut agent = Lldp::new(config, Now::ZERO);
    agent.link(Now::ZERO, true);
    agent
}

/// Hears LLDPDUs until as many neighbours are there.
fn hear_until(agent: &mut Lldp, host: &mut Enode, neighbours: usize) {
    while agent.neighbours().len() != neighbours {
        let (header, payload) = host.next_lldp();
        agent.receive(Now::ZERO, &header, &payload).unwrap();
    }
}

#[test]
fn a_host_hears_of_pfc_and_of_the_end() {
    let switch = Running::start(1, |_, _| {});
    let mut host = Enode::plug(&switch.cable(0), None);
    host.listen_to_lldp();
    let mut agent = agent();
    hear_until(&mut agent, &mut host, 1);
    let neighbour = &agent.neighbours()[0];
    assert_eq!(neighbour.mac.to_string(), switch.ports[0].mac);
    assert!(neighbour.system_description.contains("lunar switch"));
    let ieee = neighbour.ieee.as_ref().unwrap();
    assert!(!ieee.ets.as_ref().unwrap().willing, "it is a switch");
    assert_eq!(agent.dcbx().lossless(), Ok(3));
    switch.orders().stop();
    hear_until(&mut agent, &mut host, 0);
    switch.stop();
}

#[test]
fn it_says_nothing_where_it_is_told_to_listen_or_is_off() {
    for mode in [LldpMode::Listen, LldpMode::Off] {
        let switch = Running::start(1, |options, _| options.lldp = mode);
        let mut host = Enode::plug(&switch.cable(0), None);
        host.listen_to_lldp();
        // What is answered later was said later.
        host.log_in();
        assert!(host.lldp_within(Duration::ZERO).is_none(), "{mode:?}");
        switch.stop();
    }
}
