use crate::wire::ethernet::{EthernetHeader, Mac, NotAMac, VlanTag};
use crate::wire::names::{FcId, NotAWwn, Wwn};

#[test]
fn names_are_written_as_the_field_writes_them() {
    assert_eq!(FcId(0xd100).to_string(), "0x00D100");
    assert_eq!(
        Wwn(0x2000_5254_0078_4100).to_string(),
        "20:00:52:54:00:78:41:00"
    );
    let mac = Mac([0x52, 0x54, 0, 0x78, 0x41, 0]);
    assert_eq!(mac.to_string(), "52:54:00:78:41:00");
    let port = Mac::of_port(Mac::VN2VN_FC_MAP, FcId(0xd100));
    assert_eq!(port.to_string(), "0e:fd:00:00:d1:00");
}

#[test]
fn names_are_read_in_every_form_that_tools_print() {
    let forms = [
        "20:00:52:54:00:78:ab:00",
        "20:00:52:54:00:78:AB:00",
        "0x200052540078AB00",
        "naa.200052540078ab00",
        "200052540078ab00",
    ];
    for form in forms {
        assert_eq!(form.parse(), Ok(Wwn(0x2000_5254_0078_ab00)), "{form}");
    }
    assert_eq!(
        "52:54:00:78:41:00".parse(),
        Ok(Mac([0x52, 0x54, 0, 0x78, 0x41, 0]))
    );
}

#[test]
fn other_strings_are_no_names() {
    let wrong = [
        "",
        "20:00:52:54:00:78:ab",
        "20:00:52:54:00:78:ab:00:",
        "20:00:52:54:00:78:ab:0g",
        "20-00-52-54-00-78-ab-00",
        "2:000:52:54:00:78:ab:00",
        "+200052540078ab0",
        "20:00:52:54:00:78:äb",
        "0x",
    ];
    for text in wrong {
        assert_eq!(text.parse::<Wwn>(), Err(NotAWwn), "{text}");
    }
    assert_eq!("52:54:00:78:41".parse::<Mac>(), Err(NotAMac));
}

#[test]
fn an_ethernet_header_is_read_with_and_without_a_tag() {
    let tag = VlanTag {
        priority: 3,
        dei: true,
        vid: 0xfff,
    };
    for vlan in [None, Some(tag)] {
        let header = EthernetHeader {
            dst: Mac::ALL_VN2VN_ENODE,
            src: Mac([2, 0, 0, 0, 0, 1]),
            vlan,
            ethertype: crate::wire::ethernet::FIP,
        };
        let mut frame = vec![0; header.len() + 1];
        header.put(&mut frame)[0] = 7;
        assert_eq!(EthernetHeader::parse(&frame), Ok((header, &[7][..])));
        for len in 0..header.len() {
            assert!(EthernetHeader::parse(&frame[..len]).is_err(), "{len}");
        }
    }
}

/// The kernel takes the outer tag out of a frame; one of VLAN 0 has a priority alone.
#[test]
fn a_tag_that_was_taken_out_says_the_vlan_unless_it_has_none() {
    let tag = |vid| VlanTag {
        priority: 3,
        dei: false,
        vid,
    };
    for (own, taken_out, vid) in [
        (None, None, 0),
        (None, Some(0), 0),
        (None, Some(5), 5),
        (Some(7), None, 7),
        (Some(7), Some(0), 7),
        (Some(7), Some(5), 5),
    ] {
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let header = EthernetHeader {
            vlan: own.map(tag),
            ..EthernetHeader::new(mac, mac, crate::wire::ethernet::FIP)
        };
        let mut frame = vec![0; header.len()];
        header.put(&mut frame);
        let (read, _) = EthernetHeader::parse_received(&frame, taken_out.map(tag)).unwrap();
        assert_eq!(read.vid(), vid, "{own:?} {taken_out:?}");
    }
}
