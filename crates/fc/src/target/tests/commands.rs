//! Commands and their ends.

use scsi::wire::sense::Status;

use crate::initiator::Data;
use crate::port::Fc4Layer;
use crate::tests::cdb10;
use crate::tests::pair::{Pair, REMOTE, all, lease, plain};

#[test]
fn a_read_is_data_and_a_response() {
    let mut pair = Pair::new(all());
    pair.read(1, 2, 10);
    pair.settle();
    let trace = [
        "> CMND 28",
        "< DATA 0+2112",
        "< DATA 2112+2112",
        "< DATA 4224+896 end",
        "< RSP 00",
    ];
    assert_eq!(pair.traced(), trace);
    assert!(pair.data() == pair.disk.bytes[1024..1024 + 5120]);
}

#[test]
fn a_long_read_is_confirmed() {
    let mut pair = Pair::new(all());
    pair.read(1, 0, 32);
    pair.settle();
    let trace = pair.traced();
    assert_eq!(trace[trace.len() - 2..], ["< RSP 00, confirm", "> CONF"]);
    assert_eq!(pair.target.next_deadline(), None, "nothing is kept");
}

#[test]
fn a_write_is_asked_for_all_at_once() {
    let mut pair = Pair::new(plain());
    pair.write(1, 0, vec![7; 17 * 512]);
    pair.settle();
    let trace = [
        "> CMND 2a",
        "< XFER_RDY 0+8704",
        "> DATA 0+2112",
        "> DATA 2112+2112",
        "> DATA 4224+2112",
        "> DATA 6336+2112",
        "> DATA 8448+256 end",
        "< RSP 00",
    ];
    assert_eq!(pair.traced(), trace);
    assert!(pair.disk.bytes[..8704].iter().all(|byte| *byte == 7));
}

/// Ends a read of 1024 bytes of which 512 were sent, and tells the response.
fn ended(status: Status, sense: &[u8], length_in: u64) -> String {
    let mut pair = Pair::stopped(plain());
    pair.read(1, 0, 2);
    pair.settle();
    pair.send_data_in(vec![1; 512]);
    pair.end(status, sense, (length_in, 0));
    assert_eq!(pair.done().status, status as u8);
    assert_eq!(pair.done().sense.as_slice(), sense);
    pair.trace.last().unwrap().clone()
}

#[test]
fn a_read_that_asks_for_less_than_is_announced_is_an_underrun() {
    assert_eq!(ended(Status::Good, &[], 512), "< RSP 00 under 512");
}

#[test]
fn a_read_that_fails_tells_what_has_not_moved() {
    let told = ended(Status::CheckCondition, &[0x72, 3, 0x11, 0], 1024);
    assert_eq!(told, "< RSP 02 under 512 sense of 4");
}

#[test]
fn a_read_that_asks_for_more_is_cut_off_and_an_overrun() {
    let mut pair = Pair::new(plain());
    pair.execute(1, cdb10(0x28, 0, 3), Data::In(lease(vec![0; 512])));
    pair.settle();
    let trace = ["> CMND 28", "< DATA 0+512 end", "< RSP 00 over 1024"];
    assert_eq!(pair.traced(), trace);
}

/// FCP-4: FCP_RESID_OVER, though the command fails and nothing moves.
#[test]
fn a_write_that_is_refused_for_what_it_announces_is_an_overrun() {
    let mut pair = Pair::stopped(plain());
    pair.execute(1, cdb10(0x2a, 0, 1), Data::Out(lease(vec![1; 200])));
    pair.settle();
    pair.end(Status::CheckCondition, &[0x72, 5, 0x0e, 3], (0, 512));
    let trace = ["> CMND 2a", "< RSP 02 over 312 sense of 4"];
    assert_eq!(pair.traced(), trace);
}

#[test]
fn what_waits_is_told_to_the_device_server() {
    let mut pair = Pair::stopped(plain());
    pair.read(1, 0, 8);
    pair.settle();
    pair.send_data_in(vec![1; 4096]);
    assert_eq!(pair.target.data_in_queued(REMOTE), 4096);
    pair.settle();
    assert_eq!(pair.target.data_in_queued(REMOTE), 0);
}
