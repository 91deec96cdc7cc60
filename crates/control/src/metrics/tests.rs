//! The text that Prometheus reads.

use super::{VolumeStats, of_sessions, of_volumes};
use crate::plane::Session;

fn volume(name: &str, reads: u64) -> VolumeStats {
    VolumeStats {
        volume: name.to_owned(),
        absent: reads == 0,
        capacity_bytes: 1 << 30,
        used_bytes: (reads > 0).then_some(4096),
        reads,
        writes: 2,
        read_bytes: reads * 512,
        written_bytes: 1024,
    }
}

#[test]
fn numbers_have_names_and_labels_that_are_escaped() {
    let mut text = String::new();
    let silent = VolumeStats {
        writes: 0,
        written_bytes: 0,
        ..volume("silent", 0)
    };
    of_volumes(&[volume("db", 7), silent], &mut text);
    let session = Session {
        id: 3,
        initiator: "iqn.2026-11.org.example:\"h\\1\n".to_owned(),
        isid: "400001370000".to_owned(),
        target: Some("iqn.2026-11.org.example:san".to_owned()),
        address: "192.0.2.7:41822".to_owned(),
        portal: "192.0.2.1:3260".to_owned(),
        core: 0,
        age_s: 12,
    };
    of_sessions(&[session], &mut text);
    insta::assert_snapshot!(text);
}
