//! What is known of unit attentions having come (RFC 7143 §4.2.2.2).

use scsi::task::Tag;
use scsi::wire::asc;
use scsi::wire::sense::{Format, Sense, Status};

use super::rig::Rig;
use crate::wire::bhs::Ttt;

const FORMATS: [Format; 2] = [Format::Fixed, Format::Descriptor];

fn end_with(rig: &mut Rig, tag: Tag, code: u16, format: Format) {
    let sense = Sense::attention(code).encode(format);
    rig.complete(tag, Status::CheckCondition, sense.as_slice(), 0, 0);
}

#[test]
fn an_attention_has_come_when_its_response_is_acknowledged() {
    for format in FORMATS {
        let mut rig = Rig::new();
        let tag = rig.read(1, 8).tag;
        // Its ExpStatSN is from before the response.
        let late = rig.read_pdu(2, 8);
        end_with(&mut rig, tag, asc::POWER_ON_OR_RESET, format);
        assert!(!rig.session.has_told(), "it waits");
        rig.sent();
        assert!(!rig.session.has_told(), "it is on its way");
        rig.send(late.encode(), &[]);
        assert!(!rig.session.has_told(), "nobody has said that it came");
        rig.ping(3, &[]);
        assert!(rig.session.has_told());
    }
}

#[test]
fn an_attention_whose_command_failed_otherwise_has_not_come() {
    let mut rig = Rig::new();
    let tag = rig.write(1, 4096, true, &[]).tag;
    // More than was announced.
    rig.data_out(1, Ttt::NONE, 0, 0, true, &[1; 512]);
    end_with(&mut rig, tag, asc::POWER_ON_OR_RESET, Format::Fixed);
    rig.sent();
    rig.ping(2, &[]);
    assert!(!rig.session.has_told());
}

#[test]
fn other_answers_and_losses_need_not_come() {
    for format in FORMATS {
        let mut rig = Rig::new();
        let tag = rig.read(1, 8).tag;
        end_with(&mut rig, tag, asc::NEXUS_LOSS, format);
        let tag = rig.read(2, 8).tag;
        rig.good(tag, 8, 0);
        assert!(rig.session.has_told());
    }
}
