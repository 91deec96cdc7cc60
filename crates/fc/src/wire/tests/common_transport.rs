use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::ct::fdmi::{self, FdmiAccept, FdmiAttribute, FdmiRequest};
use crate::wire::ct::name_server::{
    AddressScope, Fc4Types, FeatureBits, NameServerAccept, NameServerRequest, PortEntry, PortType,
    SymbolicName, code,
};
use crate::wire::ct::{
    CtCode, CtError, CtHeader, CtReject, CtService, HEADER_LEN, explanation, reason,
};
use crate::wire::frame::FrameType;
use crate::wire::names::{FcId, Wwn};

fn fc_id() -> impl Strategy<Value = FcId> {
    (0..1u32 << 24).prop_map(FcId)
}

fn wwn() -> impl Strategy<Value = Wwn> {
    any::<u64>().prop_map(Wwn)
}

fn symbolic() -> impl Strategy<Value = SymbolicName> {
    vec(any::<u8>(), 0..=255).prop_map(|bytes| SymbolicName::new(&bytes))
}

fn types() -> impl Strategy<Value = Fc4Types> {
    any::<[u8; 32]>().prop_map(Fc4Types)
}

fn search() -> impl Strategy<Value = (AddressScope, FrameType)> {
    any::<(u8, u8, u8)>().prop_map(|(domain, area, kind)| {
        let scope = AddressScope { domain, area };
        (scope, FrameType(kind))
    })
}

/// Requests that ask.
fn query() -> impl Strategy<Value = NameServerRequest> {
    type Query = NameServerRequest;
    let by_id = [
        Query::GaNxt,
        Query::GpnId,
        Query::GnnId,
        Query::GcsId,
        Query::GftId,
        Query::GspnId,
        Query::GptId,
        Query::GfpnId,
        Query::GffId,
        Query::DaId,
    ];
    let by_name = [Query::GidPn, Query::GidNn, Query::GsnnNn];
    let by_type = [Query::GidFt, Query::GpnFt, Query::GnnFt];
    let kind = |(scope, kind): (AddressScope, FrameType)| (scope, PortType(kind.0));
    prop_oneof![
        (proptest::sample::select(by_id.to_vec()), fc_id()).prop_map(|(make, id)| make(id)),
        (proptest::sample::select(by_name.to_vec()), wwn()).prop_map(|(make, name)| make(name)),
        (proptest::sample::select(by_type.to_vec()), search())
            .prop_map(|(make, (scope, kind))| make(scope, kind)),
        any::<u8>().prop_map(Query::GiA),
        search()
            .prop_map(kind)
            .prop_map(|(scope, kind)| Query::GidPt(scope, kind)),
        (search(), any::<u8>())
            .prop_map(|((scope, kind), features)| Query::GidFf(scope, features, kind)),
    ]
}

/// Requests that register.
fn registration() -> impl Strategy<Value = NameServerRequest> {
    type Registration = NameServerRequest;
    let features = any::<(u8, u8)>();
    prop_oneof![
        (fc_id(), wwn()).prop_map(|(id, name)| Registration::RpnId(id, name)),
        (fc_id(), wwn()).prop_map(|(id, name)| Registration::RnnId(id, name)),
        (fc_id(), any::<u32>()).prop_map(|(id, classes)| Registration::RcsId(id, classes)),
        (fc_id(), types()).prop_map(|(id, types)| Registration::RftId(id, types)),
        (fc_id(), symbolic()).prop_map(|(id, name)| Registration::RspnId(id, name)),
        (fc_id(), any::<u8>()).prop_map(|(id, kind)| Registration::RptId(id, PortType(kind))),
        (fc_id(), features).prop_map(|(id, (bits, kind))| Registration::RffId(
            id,
            bits,
            FrameType(kind)
        )),
        (wwn(), symbolic()).prop_map(|(node, name)| Registration::RsnnNn(node, name)),
    ]
}

fn entry() -> impl Strategy<Value = PortEntry> {
    let names = ((wwn(), symbolic()), (wwn(), symbolic()), wwn());
    let ids = (any::<u8>(), fc_id(), fc_id());
    (ids, names, any::<u32>(), types()).prop_map(
        |((kind, fc_id, hard_address), (port, node, f_port_name), classes, types)| PortEntry {
            kind: PortType(kind),
            fc_id,
            wwpn: port.0,
            symbolic_port: port.1,
            wwnn: node.0,
            symbolic_node: node.1,
            classes,
            types,
            f_port_name,
            hard_address,
        },
    )
}

/// An accept, and the code of what it answers.
fn accept() -> impl Strategy<Value = (CtCode, NameServerAccept)> {
    let to = |code| move |accept| (code, accept);
    let features = vec(any::<u8>(), 128);
    let features = features.prop_map(|bits| FeatureBits(bits.try_into().unwrap()));
    prop_oneof![
        Just((code::RFT_ID, NameServerAccept::Empty)),
        entry()
            .prop_map(|entry| NameServerAccept::Port(Box::new(entry)))
            .prop_map(to(code::GA_NXT)),
        fc_id()
            .prop_map(NameServerAccept::Id)
            .prop_map(to(code::GID_PN)),
        vec(fc_id(), 1..9)
            .prop_map(NameServerAccept::Ids)
            .prop_map(to(code::GID_FT)),
        wwn()
            .prop_map(NameServerAccept::Name)
            .prop_map(to(code::GPN_ID)),
        vec((fc_id(), wwn()), 1..9)
            .prop_map(NameServerAccept::Names)
            .prop_map(to(code::GPN_FT)),
        any::<u32>()
            .prop_map(NameServerAccept::Classes)
            .prop_map(to(code::GCS_ID)),
        types()
            .prop_map(NameServerAccept::Types)
            .prop_map(to(code::GFT_ID)),
        features
            .prop_map(|bits| NameServerAccept::Features(Box::new(bits)))
            .prop_map(to(code::GFF_ID)),
        any::<u8>()
            .prop_map(|kind| NameServerAccept::PortType(PortType(kind)))
            .prop_map(to(code::GPT_ID)),
        symbolic()
            .prop_map(NameServerAccept::SymbolicName)
            .prop_map(to(code::GSPN_ID)),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<FdmiAttribute>> {
    let attribute = (any::<u16>(), vec(any::<u8>(), 0..40));
    vec(
        attribute.prop_map(|(kind, value)| FdmiAttribute { kind, value }),
        0..5,
    )
}

fn fdmi_request() -> impl Strategy<Value = FdmiRequest> {
    let by_name = [
        FdmiRequest::Ghat,
        FdmiRequest::Grpl,
        FdmiRequest::Gpat,
        FdmiRequest::Dhba,
        FdmiRequest::Dprt,
    ];
    let with_attributes = [
        FdmiRequest::Rhat,
        FdmiRequest::Rpa,
        FdmiRequest::Dhat,
        FdmiRequest::Dpa,
    ];
    let (by_name, with_attributes) = (by_name.to_vec(), with_attributes.to_vec());
    prop_oneof![
        Just(FdmiRequest::Grhl),
        (proptest::sample::select(by_name), wwn()).prop_map(|(make, name)| make(name)),
        (
            proptest::sample::select(with_attributes),
            wwn(),
            attributes()
        )
            .prop_map(|(make, name, attributes)| make(name, attributes)),
        (wwn(), vec(wwn(), 0..4), attributes())
            .prop_map(|(hba, ports, attributes)| FdmiRequest::Rhba(hba, ports, attributes)),
        (wwn(), wwn(), attributes())
            .prop_map(|(hba, port, attributes)| FdmiRequest::Rprt(hba, port, attributes)),
    ]
}

fn fdmi_accept() -> impl Strategy<Value = (CtCode, FdmiAccept)> {
    let names = || vec(wwn(), 0..4);
    prop_oneof![
        Just((fdmi::code::RHBA, FdmiAccept::Empty)),
        names().prop_map(|names| (fdmi::code::GRHL, FdmiAccept::Names(names))),
        attributes().prop_map(|list| (fdmi::code::GPAT, FdmiAccept::Attributes(list))),
        (names(), attributes())
            .prop_map(|(ports, list)| (fdmi::code::GHAT, FdmiAccept::Hba(ports, list))),
    ]
}

fn parsed(bytes: &[u8]) -> Result<NameServerRequest, CtError> {
    let (header, payload) = CtHeader::parse(bytes)?;
    NameServerRequest::parse(header.code, payload)
}

fn parsed_fdmi(bytes: &[u8]) -> Result<FdmiRequest, CtError> {
    let (header, payload) = CtHeader::parse(bytes)?;
    FdmiRequest::parse(header.code, payload)
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(
        request in prop_oneof![query(), registration()], fill in vec(Just(0u8), 0..4),
    ) {
        let mut bytes = request.encode();
        let needed = match request {
            // Reserved bytes behind the type need not be there.
            NameServerRequest::RptId(..) => bytes.len() - 3,
            _ => bytes.len(),
        };
        prop_assert!((0..needed).all(|len| parsed(&bytes[..len]).is_err()));
        bytes.extend(fill);
        prop_assert_eq!(parsed(&bytes), Ok(request));
    }

    #[test]
    fn an_accept_is_read_as_it_was_written((to, accept) in accept()) {
        let request = CtHeader::request(CtService::NAME_SERVER, to);
        let bytes = accept.encode(&request).unwrap();
        let (header, payload) = CtHeader::parse(&bytes).unwrap();
        prop_assert_eq!(header, request.accept(0));
        prop_assert_eq!(NameServerAccept::parse(to, payload), Ok(accept));
        // Nothing is read that is not there; a symbolic name may come without its zeros, and a list
        // without entries.
        for len in 0..payload.len() {
            let cut = NameServerAccept::parse(to, &payload[..len]);
            let is_name = matches!(cut, Ok(NameServerAccept::SymbolicName(_)));
            let is_type = matches!(cut, Ok(NameServerAccept::PortType(_)));
            let is_list = matches!(cut, Ok(NameServerAccept::Ids(_) | NameServerAccept::Names(_)));
            prop_assert!(cut.is_err() || is_name || is_type || is_list && len == 0);
        }
    }

    #[test]
    fn device_management_is_read_as_it_was_written(
        request in fdmi_request(), (to, accept) in fdmi_accept(),
    ) {
        let bytes = request.encode();
        prop_assert_eq!(parsed_fdmi(&bytes), Ok(request.clone()));
        let may_be_cut = matches!(request, FdmiRequest::Dhat(..) | FdmiRequest::Dpa(..));
        let whole = |len: &usize| may_be_cut && *len == HEADER_LEN + 8;
        for len in (0..bytes.len()).filter(|len| !whole(len)) {
            prop_assert!(parsed_fdmi(&bytes[..len]).is_err());
        }
        let header = CtHeader::request(CtService::FDMI, to);
        let bytes = accept.encode(&header).unwrap();
        prop_assert_eq!(FdmiAccept::parse(to, &bytes[HEADER_LEN..]), Ok(accept));
    }

    #[test]
    fn headers(bytes: [u8; 16]) {
        let (header, rest) = CtHeader::parse(&bytes).unwrap();
        prop_assert!(rest.is_empty() && CtHeader::parse(&bytes[..15]).is_err());
        let again = CtHeader::parse(&header.encode()).unwrap().0;
        prop_assert_eq!(again, header);
    }

    #[test]
    fn types_and_features_are_where_they_were_set(
        kinds in vec(any::<u8>(), 0..9), bits in 1..16u8,
    ) {
        let kinds: Vec<_> = kinds.into_iter().map(FrameType).collect();
        let types = Fc4Types::of(&kinds);
        let mut features = FeatureBits::default();
        kinds.iter().for_each(|kind| features.set(*kind, bits));
        for kind in (0..=255).map(FrameType) {
            let is_set = kinds.contains(&kind);
            prop_assert_eq!(types.has(kind), is_set);
            prop_assert_eq!(features.of(kind) == bits, is_set);
        }
    }
}

/// As libfc writes it: FCP is bit 8 of the first word, and CT bit 0 of the second.
#[test]
fn a_registration_of_types_by_linux() {
    let request = [
        [1, 0, 0, 0, 0xfc, 2, 0, 0, 2, 0x17, 0, 0, 0, 0, 0, 0].as_slice(),
        &[0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1],
        &[0; 24],
    ];
    let types = Fc4Types::of(&[FrameType::FCP, FrameType::CT]);
    let expected = NameServerRequest::RftId(FcId(0x01_0100), types);
    assert_eq!(expected.encode(), request.concat());
}

#[test]
fn a_search_for_features_has_two_words() {
    let scope = AddressScope { domain: 1, area: 2 };
    let request = NameServerRequest::GidFf(scope, FeatureBits::FCP_TARGET, FrameType::FCP);
    assert_eq!(request.encode()[HEADER_LEN..], [0, 1, 2, 0, 0, 0, 1, 8]);
    let one_word = NameServerRequest::parse(code::GID_FF, &[0, 1, 2, 0]);
    assert_eq!(one_word, Err(CtError::Truncated));
}

#[test]
fn an_entry_of_a_port_has_620_bytes() {
    let entry = PortEntry {
        kind: PortType::N_PORT,
        fc_id: FcId(0x01_0100),
        wwpn: Wwn(1),
        symbolic_port: SymbolicName::new(&[b'p'; 300]),
        wwnn: Wwn(2),
        symbolic_node: SymbolicName::new(b"node"),
        classes: 8,
        types: Fc4Types::default(),
        f_port_name: Wwn(3),
        hard_address: FcId(0),
    };
    assert_eq!(entry.symbolic_port.bytes(), [b'p'; 255]);
    let request = CtHeader::request(CtService::NAME_SERVER, code::GA_NXT);
    let bytes = NameServerAccept::Port(Box::new(entry)).encode(&request);
    assert_eq!(bytes.unwrap().len(), HEADER_LEN + 620);
}

#[test]
fn a_list_is_cut_at_an_entry() {
    let mut request = CtHeader::request(CtService::NAME_SERVER, code::GPN_FT);
    let names = (1..=5).map(|id| (FcId(id), Wwn(id.into()))).collect();
    let accept = NameServerAccept::Names(names);
    request.size = 11;
    let bytes = accept.encode(&request).unwrap();
    let (header, payload) = CtHeader::parse(&bytes).unwrap();
    assert_eq!((header.size, payload.len()), (12, 32));
    let two = vec![(FcId(1), Wwn(1)), (FcId(2), Wwn(2))];
    let two = NameServerAccept::Names(two);
    assert_eq!(NameServerAccept::parse(code::GPN_FT, payload), Ok(two));
    // Not even one.
    request.size = 3;
    let bytes = accept.encode(&request).unwrap();
    let (header, payload) = CtHeader::parse(&bytes).unwrap();
    assert_eq!((header.size, payload), (20, [0; 0].as_slice()));
    request.size = 1;
    assert_eq!(NameServerAccept::Name(Wwn(1)).encode(&request), None);
}

#[test]
fn a_reject_tells_why() {
    let request = CtHeader::request(CtService::NAME_SERVER, code::GPN_ID);
    let why = CtReject::new(reason::UNABLE, explanation::PORT_ID_NOT_REGISTERED);
    let (reject, _) = CtHeader::parse(&request.reject(why).encode()).unwrap();
    assert_eq!(reject.outcome(&[]), Err(why));
    assert_eq!(request.accept(0).outcome(&[1]), Ok([1].as_slice()));
}

#[test]
fn counts_that_lie_cost_nothing() {
    let name = [0; 8];
    let many = [0xff; 4];
    let ports = [name.as_slice(), &many].concat();
    let wrong = Err(CtError::Length);
    assert_eq!(FdmiRequest::parse(fdmi::code::RHBA, &ports), wrong);
    assert_eq!(FdmiRequest::parse(fdmi::code::RPA, &ports), wrong);
    for len in [0, 3, 9] {
        let attribute = [name.as_slice(), &[0, 0, 0, 1, 0, 1, 0, len, 7, 7, 7, 7]].concat();
        assert_eq!(
            FdmiRequest::parse(fdmi::code::RHAT, &attribute),
            wrong,
            "{len}"
        );
    }
    // A name that is longer than what there is.
    let name = NameServerRequest::parse(code::RSPN_ID, &[0, 0, 0, 1, 4, b'l', b'u', b'n']);
    assert_eq!(name, wrong.map(|_: FdmiRequest| NameServerRequest::GiA(0)));
}
