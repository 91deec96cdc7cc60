//! What the kernel's program lets through is what `takes` says.

use super::super::filter::{program, takes};
use super::*;

#[test]
fn a_program_for_all_addresses_is_one_that_the_kernel_takes() {
    let addresses: Vec<EtherMac> = (0..64).map(|last| [2, 0, 0, 0, 0, last]).collect();
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    super::super::raw::filter(&socket.into(), &program(&addresses)).unwrap();
}

#[test]
fn short_frames_and_tags_are_looked_at() {
    let own = [2, 0, 0, 0, 0, 1];
    let whole = frame(own, FCOE, 60);
    assert!(takes(&[own], &whole));
    for len in 0..14 {
        assert!(!takes(&[own], &whole[..len]));
    }
    let tagged = [&whole[..12], &[0x81, 0x00, 0x60, 0x05], &whole[12..]].concat();
    assert!(takes(&[own], &tagged));
    for len in 0..18 {
        assert!(!takes(&[own], &tagged[..len]));
    }
}
