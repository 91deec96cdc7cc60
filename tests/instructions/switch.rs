//! A switch that forwards full frames: from where a frame came in to the slot where it leaves.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{PortNumber, Switch, SwitchConfig, SwitchPortConfig, Verdict};
use fc::wire::els::{ClassParameters, Els, Features, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fcoe::{self, Eof, Sof};
use fc::wire::fip::{self, Descriptor, DescriptorType, Encapsulated, FipOperation, Flags};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};

use super::{COMMANDS, Counts};

const PAYLOAD: [u8; 2112] = [7; 2112];

/// A switch of two ports with as many pairs of hosts, one of each pair at either port.
pub(crate) fn forward(pairs: u16) {
    let mut switch = switch();
    for number in 0..2 * pairs {
        log_in(&mut switch, number);
    }
    let ids: Vec<FcId> = switch.logins().map(|login| login.fc_id).collect();
    assert_eq!(ids.len(), 2 * usize::from(pairs));
    let frames: Vec<Vec<u8>> = (0..COMMANDS as usize)
        .map(|number| {
            let pair = 2 * (number * 31 % usize::from(pairs));
            full_frame(ids[pair], ids[pair + 1])
        })
        .collect();
    let now = Duration::from_mins(1);
    let mut slot = vec![0; frames[0].len()];
    Counts::Yes.run(|| {
        for frame in &frames {
            let verdict = switch.receive(now, PortNumber(0), black_box(frame));
            let Verdict::Forward(way) = verdict else {
                panic!("{verdict:?}");
            };
            way.write(frame, black_box(&mut slot));
        }
    });
}

fn fcf(port: u16) -> Mac {
    Mac([2, 0, 0, 0xfc, 0, port as u8])
}

fn switch() -> Switch {
    let config = SwitchConfig {
        zones: Arc::new(Zones::open()),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(&config, Duration::ZERO, [1; 8]);
    for port in 0..2 {
        let number = switch.add_port(SwitchPortConfig {
            place: format!("eth{port}").into(),
            mac: fcf(port),
            mtu: 2500,
            tag: None,
            hears_partner: false,
        });
        switch.link(Duration::ZERO, number, true);
    }
    switch
}

/// A host logs in, at a port by its number.
fn log_in(switch: &mut Switch, number: u16) {
    let [high, low] = number.to_be_bytes();
    let mac = Mac([2, 0, 0, 1, high, low]);
    let name = u64::from(number);
    let login = ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 10,
        features: Features::CONTINUOUS_OFFSET,
        receive_size: 2112,
        total_sequences: 0,
        relative_offset: 0,
        e_d_tov: 0,
        wwpn: Wwn(0x2000_0200_0000_0000 | name),
        wwnn: Wwn(0x1000_0200_0000_0000 | name),
        class_3: ClassParameters {
            options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
            ..ClassParameters::default()
        },
    };
    let request = Descriptor::Els(Encapsulated {
        kind: DescriptorType::FLOGI,
        header: header(
            (RCtl::ELS_REQUEST, FrameType::ELS),
            (FcId::UNIDENTIFIED, FcId::FABRIC_F),
        ),
        payload: &Els::Flogi(login).encode(),
    });
    let none = Descriptor::Mac(Mac::default());
    let bytes = fip::encode(FipOperation::ElsRequest, Flags::FPMA, &[request, none]);
    let ethernet = EthernetHeader::new(mac, fcf(number % 2), ethernet::FIP);
    let mut frame = vec![0; ethernet.len() + bytes.len()];
    ethernet.put(&mut frame).copy_from_slice(&bytes);
    // Slowly, as what one port takes of FIP in a second is limited.
    let now = Duration::from_millis(10 * u64::from(number));
    switch.receive(now, PortNumber(number % 2), &frame);
    while switch.poll().is_some() {}
}

fn header(kind: (RCtl, FrameType), ids: (FcId, FcId)) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        ..FrameHeader::new(kind, ids, (OxId(1), RxId::UNASSIGNED))
    }
}

fn full_frame(from: FcId, to: FcId) -> Vec<u8> {
    let ethernet = EthernetHeader::new(Mac::of_port(Mac::FC_MAP, from), fcf(0), ethernet::FCOE);
    let header = header((RCtl::UNSOLICITED_COMMAND, FrameType::FCP), (from, to));
    let mut frame = vec![0; fcoe::frame_len(&ethernet, PAYLOAD.len())];
    let fill = |bytes: &mut [u8]| bytes.copy_from_slice(&PAYLOAD);
    let delimiters = (Sof::I3, Eof::T);
    fcoe::encode(
        &mut frame,
        &ethernet,
        delimiters,
        &header,
        PAYLOAD.len(),
        fill,
    );
    frame
}
