//! What the Linux kernel sent (`captured/*.hex`): understood and written alike, and a conversation
//! of two kernels in which our machine takes either part.

use scsi::medium::Now;

use super::rig::{frames, line, ms, told};
use crate::fip::{Fip, FipConfig, Mode};
use crate::wire::ethernet::{self, Mac};
use crate::wire::fip::{self, Descriptor, FipMessage};
use crate::wire::names::Wwn;

const MTU_2500: &str = include_str!("captured/vn2vn-mtu2500.hex");
const MTU_1500: &str = include_str!("captured/vn2vn-mtu1500.hex");
const FABRIC: &str = include_str!("captured/fabric.hex");

/// A frame as it travelled.
pub(crate) struct Captured {
    at: Now,
    title: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// What fipvlan and the kernel sent that look for a fabric.
pub(crate) fn fabric() -> Vec<Captured> {
    captured(FABRIC)
}

fn captured(file: &'static str) -> Vec<Captured> {
    let mut all: Vec<Captured> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("= ") {
            let (at, title) = head.split_once(' ').unwrap();
            let at = ms(1000) + Now::from_micros(at.parse().unwrap());
            let bytes = Vec::new();
            all.push(Captured { at, title, bytes });
        } else if let Some(last) = all.last_mut() {
            let zeros = line
                .strip_prefix("zeros ")
                .map_or(0, |n| n.parse().unwrap());
            let hex = line.split_whitespace().take_while(|_| zeros == 0);
            let bytes = hex.map(|digits| u8::from_str_radix(digits, 16).unwrap());
            last.bytes.extend(bytes);
            last.bytes.resize(last.bytes.len() + zeros, 0);
        }
    }
    all
}

#[test]
fn every_message_is_written_as_it_came() {
    let files = [MTU_2500, MTU_1500, FABRIC].map(captured);
    assert_eq!(files.each_ref().map(Vec::len), [16, 18, 4]);
    for Captured { title, bytes, .. } in files.iter().flatten() {
        let (header, payload) = ethernet::EthernetHeader::parse(bytes).unwrap();
        assert_eq!(header.ethertype, ethernet::FIP);
        let message = FipMessage::parse(payload).unwrap();
        let descriptors: Vec<_> = message.descriptors().map(Result::unwrap).collect();
        let mut again = fip::encode(message.operation, message.flags, &descriptors);
        again.resize(payload.len(), 0);
        assert_eq!(again, payload, "{title}");
        let unknown = |one: &Descriptor<'_>| matches!(one, Descriptor::Unknown { .. });
        assert!(!descriptors.iter().any(unknown), "{title}");
    }
}

const TARGET: [u8; 6] = [0x52, 0x54, 0, 0x78, 0x41, 0];
const INITIATOR: [u8; 6] = [0x52, 0x54, 0, 0xeb, 0xd1, 0];

/// Our port in the place of the kernel's with this address: what it sends while it hears what the
/// other kernel sent, and what the kernel sent instead.
fn in_place_of(mac: [u8; 6], file: &'static str, mtu: usize) -> (Vec<Vec<u8>>, Vec<Captured>) {
    let number = Mac(mac).number();
    let config = FipConfig {
        mac: Mac(mac),
        wwpn: Wwn(0x2000 << 48 | number),
        wwnn: Wwn(0x1000 << 48 | number),
        max_fcoe: crate::fip::max_fcoe(mtu),
        mode: Mode::Multipoint,
        target: mac == TARGET,
        initiator: true,
    };
    let vn = [0x0e, 0xfd, 0, 0, mac[4], mac[5]];
    let is_ours = |one: &Captured| one.bytes[6..12] == mac || one.bytes[6..12] == vn;
    let (theirs, rest): (Vec<_>, Vec<_>) = captured(file).into_iter().partition(is_ours);
    let mut ours = Vec::new();
    // So that its first probe is sent when the kernel sent its.
    let mut fip = Fip::new(config, ms(0), [1; 8]);
    fip.link(ms(0), true);
    let wait = fip.next_deadline().unwrap();
    fip = Fip::new(config, ms(0), [1; 8]);
    fip.link(theirs[0].at - wait, true);
    let until = theirs.last().unwrap().at;
    let mut input = rest.into_iter().filter(|one| one.at <= until).peekable();
    loop {
        let next = input.peek().map_or(until, |one| one.at);
        match fip.next_deadline().filter(|at| *at <= next) {
            Some(at) => fip.expire(at),
            None => match input.next() {
                Some(one) => {
                    let (header, payload) = ethernet::EthernetHeader::parse(&one.bytes).unwrap();
                    fip.receive(one.at, &header, payload).unwrap();
                }
                None => break,
            },
        }
        ours.extend(frames(&mut fip));
    }
    let found = told(&mut fip);
    assert!(
        found.iter().any(|line| line.starts_with("found ")),
        "{found:?}"
    );
    (ours, theirs)
}

/// The bit of F_CTL that passes the sequence initiative on says nothing in the reply that ends an
/// exchange; Linux sets it.
fn without_initiative(mut frame: Vec<u8>) -> Vec<u8> {
    let reply = frame[16..20] == [0, 2, 0, 2];
    if reply {
        frame[14 + 10 + 4 + 9] &= !1;
    }
    frame
}

/// Byte by byte the kernel's, but for what it sent under `left_out`.
#[track_caller]
fn equivalent(mac: [u8; 6], file: &'static str, mtu: usize, left_out: &[usize]) {
    let (ours, theirs) = in_place_of(mac, file, mtu);
    let theirs = theirs.into_iter().enumerate();
    let theirs = theirs.filter(|(at, _)| !left_out.contains(at));
    let theirs: Vec<_> = theirs
        .map(|(_, one)| without_initiative(one.bytes))
        .collect();
    let lines = |all: &[Vec<u8>]| all.iter().map(|one| line(one)).collect::<Vec<_>>();
    assert_eq!(lines(&ours), lines(&theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", line(theirs));
    }
}

/// Linux logs in again at once to who has logged out; ours waits for a Beacon.
#[test]
fn in_the_place_of_the_target() {
    equivalent(TARGET, MTU_2500, 2500, &[8]);
    equivalent(TARGET, MTU_1500, 1500, &[9]);
}

/// It leaves with a LOGO, which ours is not told to do here. At MTU 1500 it logged in to the target
/// as the target did to it, having heard the Beacon of before it was up.
#[test]
fn in_the_place_of_the_initiator() {
    equivalent(INITIATOR, MTU_2500, 2500, &[6]);
    equivalent(INITIATOR, MTU_1500, 1500, &[4, 7]);
}
