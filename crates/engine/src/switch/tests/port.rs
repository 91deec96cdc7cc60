//! What a port tells of the interface that it is at.

use ::io::ether::Drops;
use fc::wire::els::LinkErrors;

use super::super::port::carrier_errors;

#[test]
fn errors_of_the_card_are_those_of_the_link_error_status_block() {
    let drops = Drops {
        fcs: 7,
        framing: 1 << 40,
        ring_full: 5,
        received: 9,
        ..Drops::default()
    };
    let expected = LinkErrors {
        invalid_crcs: 7,
        invalid_words: u32::MAX,
        ..LinkErrors::default()
    };
    assert_eq!(carrier_errors(&drops), expected);
}
