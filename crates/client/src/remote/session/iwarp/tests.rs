//! What is told of a queue pair is what its startup has brought.

use super::*;

const TARGET: StartupConfig = StartupConfig {
    crc: false,
    long_fpdus: false,
    ird: 1,
    ord: 8,
};

/// What became of a pair whose target sends this private data.
fn started(private: &[u8]) -> (Agreed, bool) {
    let mut startup = IwarpStartup {
        connection: IwarpConnection {
            crc: true,
            segment_size: 1448,
            random: [7; 32],
        },
        is_asked: false,
        reader: FrameReader::new(FrameKind::Reply),
    };
    let request = startup.request().unwrap();
    assert!(invalidates(&request.private), "it is borne");
    let (reply, _) = TARGET.accept(&request, private);
    let (stream, invalidates) = startup.receive(&reply.encode()).unwrap().unwrap();
    (stream.agreed(), invalidates)
}

#[test]
fn the_target_says_whether_it_invalidates() {
    for (private, told) in [
        (&private_data(true)[..], true),
        (&private_data(false), false),
        // Nothing was said.
        (&[], false),
    ] {
        let (agreed, invalidates) = started(private);
        assert_eq!(invalidates, told, "{private:?}");
        assert_eq!((agreed.revision, agreed.crc, agreed.ord), (2, true, 1));
    }
}
