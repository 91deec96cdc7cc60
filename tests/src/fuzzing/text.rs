//! Text keys: parsed, negotiated and answered as a target does.

use iscsi::keys::negotiation::TargetNegotiation;
use iscsi::keys::{KeyPhase, KeySide, SeenKeys};
use iscsi::names;
use iscsi::parameters::Operational;
use iscsi::text::{self, Assembly, MAX_KEY, MAX_TEXT, Text};

use super::script::Script;
use iscsi::test_support::limits;

/// See docs/fuzzing.md.
pub fn text(data: &[u8]) {
    let mut script = Script::new(data);
    let flags = script.byte();
    let phase = script.pick(&[
        KeyPhase::Operational,
        KeyPhase::Security,
        KeyPhase::FullFeature,
    ]);
    let discovery = flags & 1 != 0;
    let mut negotiation = match phase {
        KeyPhase::FullFeature => TargetNegotiation::resume(Operational::default(), discovery),
        _ => TargetNegotiation::new(limits().preferences(), discovery),
    };
    let mut seen = SeenKeys::default();
    let mut assembly = Assembly::default();
    while !script.is_over() {
        let more = usize::from(script.half());
        let segment = script.take(more);
        if assembly.push(segment).is_err() {
            assert!(assembly.is_empty());
            return;
        }
        if flags & 2 == 0 || script.flag() {
            let bytes = assembly.take();
            answer(&bytes, phase, &mut seen, &mut negotiation);
        }
    }
    within_bounds(&negotiation.outcome());
}

fn answer(bytes: &[u8], phase: KeyPhase, seen: &mut SeenKeys, negotiation: &mut TargetNegotiation) {
    assert!(bytes.len() <= MAX_TEXT);
    let Ok(pairs) = text::parse(bytes) else {
        return;
    };
    for pair in &pairs {
        assert!((1..=MAX_KEY).contains(&pair.key.len()));
        value(pair.value);
    }
    let mut reply = Text::default();
    let admitted = seen.admit(&pairs, phase, KeySide::Initiator, &mut reply);
    if let Ok(admitted) = admitted {
        let _ = negotiation.answer(&admitted, &mut reply);
    }
    can_be_read(reply, bytes.len());
}

/// An answer is bounded by the question, and the other side can read it.
fn can_be_read(mut reply: Text, asked: usize) {
    let mut bytes = Vec::new();
    while !reply.is_empty() {
        let (segment, more) = reply.next_segment(512);
        assert!(segment.len() == 512 || !more, "a short segment");
        bytes.extend_from_slice(segment);
    }
    // The longest for the shortest: `a=` and its null are answered `a=NotUnderstood`.
    assert!(
        bytes.len() <= 8 * asked + 64,
        "{asked} asked, {} answered",
        bytes.len()
    );
    assert!(text::parse(&bytes).is_ok(), "{bytes:?}");
}

/// Forms of values are read in one way only.
fn value(value: &str) {
    if let Some(number) = text::number(value) {
        assert_eq!(text::number(&number.to_string()), Some(number));
        assert_eq!(text::number(&format!("0x{number:x}")), Some(number));
    }
    if let Some(bytes) = text::binary(value, 1024) {
        assert!(bytes.len() <= 1024.min(value.len()));
        assert_eq!(text::binary(&text::hex(&bytes), 1024), Some(bytes));
    }
    if let Some(flag) = text::boolean(value) {
        assert_eq!(text::yes_no(flag), value);
    }
    if let Ok(name) = names::normalise(value) {
        assert_eq!(names::normalise(&name).as_ref(), Ok(&name), "{value:?}");
    }
}

/// What a session is set up with, whatever was negotiated (RFC 7143 §13).
pub(super) fn within_bounds(keys: &Operational) {
    let lengths = 512..1 << 24;
    assert!(lengths.contains(&keys.peer_data_segment), "{keys:?}");
    assert!(lengths.contains(&keys.own_data_segment), "{keys:?}");
    assert!(lengths.contains(&keys.max_burst), "{keys:?}");
    assert!(
        (512..=keys.max_burst).contains(&keys.first_burst),
        "{keys:?}"
    );
    assert!(keys.outstanding_r2t > 0, "{keys:?}");
    assert_eq!(
        (keys.max_connections, keys.error_recovery_level),
        (1, 0),
        "{keys:?}"
    );
    assert!(keys.protocol_level <= 2, "{keys:?}");
}
