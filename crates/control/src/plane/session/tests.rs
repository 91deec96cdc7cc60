//! Sessions, as programs are told of them.

use iscsi::parameters::SessionProof;
use iscsi::target::{Endpoints, InitiatorPort};
use scsi::unit::CoreId;

use super::*;

fn info(transport: Transport) -> SessionInfo {
    SessionInfo {
        tsih: 7,
        initiator: InitiatorPort {
            name: "iqn.2026-11.org.example:h1".to_owned(),
            isid: [0x80, 0, 0, 0, 0, 1],
        },
        target: None,
        user: None,
        proof: SessionProof::None,
        transport,
        device: None,
        header_digest: false,
        data_digest: false,
        endpoints: Endpoints {
            local: ([192, 0, 2, 1], 3260).into(),
            peer: ([192, 0, 2, 7], 40_000).into(),
        },
        core: CoreId(1),
        since: Duration::from_secs(1),
    }
}

#[test]
fn the_transport_is_called_as_in_addresses() {
    let iser = Transport::Iser { data_segment: 8192 };
    for (transport, name) in [(Transport::Tcp, "iscsi"), (iser, "iser")] {
        let counts = NexusCounts::default();
        let session = Session::of(info(transport), counts, Duration::from_secs(3));
        assert_eq!((&*session.transport, session.age_s), (name, 2));
        let json = serde_json::to_value(&session).unwrap();
        assert_eq!(json["transport"], name);
    }
}
