//! PERSISTENT RESERVE IN and OUT as they come in.

use super::super::{
    Action, Register, ReservationType, apply, persistent_reserve_in, persistent_reserve_out,
};
use super::{quietly, registered, reserve};
use crate::commands::{LocalFacts, Query, QueryResult};
use crate::owner::{Effect, OwnerRequest, UnitChange};
use crate::task::CommandFailure;
use crate::testing::{by_port, host, nexus, unit};
use crate::unit::{CoreId, EffectScope, UnitState};
use crate::wire::lun::Lun;
use crate::wire::sense::{Sense, SenseKey, Status};
use crate::wire::transport_id;
use std::sync::Arc;
use std::time::Duration;

const PARAMETER_LENGTH: CommandFailure = CommandFailure::Check(Sense::parameter_length());

/// What host 1 is answered.
fn ask(state: &UnitState, cdb: &[u8], parameters: &[u8]) -> QueryResult {
    let query = Query {
        cdb,
        parameters,
        unit: Some(state),
        nexus: &nexus(1),
        lun: Lun::from_index(0),
        now: Duration::ZERO,
        local: &LocalFacts::default(),
    };
    match cdb[0] {
        0x5e => persistent_reserve_in(&query),
        _ => persistent_reserve_out(&query),
    }
}

fn read(state: &UnitState, action: u8) -> Vec<u8> {
    let cdb = [0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff, 0];
    match ask(state, &cdb, &[]) {
        QueryResult::Data(data) => data,
        answer => panic!("{answer:?}"),
    }
}

fn out(action: u8, kind: u8, list: &[u8]) -> Result<Action, CommandFailure> {
    let [a, b, c, d] = (list.len() as u32).to_be_bytes();
    let cdb = [0x5f, action, kind, 0, 0, a, b, c, d, 0];
    match ask(&unit(), &cdb, list) {
        QueryResult::Change(UnitChange::PersistentReserve(action)) => Ok(action),
        QueryResult::Fail(failure) => Err(failure),
        answer => panic!("{answer:?}"),
    }
}

fn registration(list: &[u8]) -> Register {
    match out(0, 0, list) {
        Ok(Action::Register(found)) => found,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refuses(action: u8, kind: u8, list: &[u8], why: CommandFailure) {
    let found = out(action, kind, list);
    assert_eq!(found, Err(why), "{action:02x}h, {kind:02x}h, {list:02x?}");
}

fn list(key: u64, service_action_key: u64, flags: u8) -> Vec<u8> {
    let mut list = [key.to_be_bytes(), service_action_key.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    list
}

fn specifying(ids: &[u8]) -> Vec<u8> {
    let mut list = list(0, 0xa, 0x08);
    list.extend((ids.len() as u32).to_be_bytes());
    list.extend(ids);
    list
}

fn moving(port: u16, id: &[u8]) -> Vec<u8> {
    let mut list = list(0xa, 0xb, 0);
    list[17] = 0x03;
    list[18..20].copy_from_slice(&port.to_be_bytes());
    list[20..24].copy_from_slice(&(id.len() as u32).to_be_bytes());
    list.extend(id);
    list
}

fn in_list(byte: u16, bit: Option<u8>) -> CommandFailure {
    CommandFailure::Check(Sense::parameter_field(byte, bit))
}

fn in_cdb(byte: u16, bit: u8) -> CommandFailure {
    CommandFailure::Check(Sense::cdb_field(byte, Some(bit)))
}

/// Hosts 1 and 2 with keys A and B, reserved by host 1.
fn reserved(kind: ReservationType) -> UnitState {
    let mut reservations = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
    quietly(&mut reservations, &host(1), &reserve(0xa, kind));
    UnitState {
        reservations: Arc::new(reservations),
        ..unit()
    }
}

#[test]
fn read_keys() {
    let expected = [
        0, 0, 0, 2, 0, 0, 0, 16, // generation, length
        0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0x0b,
    ];
    assert_eq!(
        read(&reserved(ReservationType::WriteExclusive), 0),
        expected
    );
    assert_eq!(read(&unit(), 0), [0; 8]);
}

#[test]
fn read_reservation() {
    let expected = [
        0, 0, 0, 2, 0, 0, 0, 16, // generation, length
        0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0, 0x06, 0, 0,
    ];
    assert_eq!(
        read(
            &reserved(ReservationType::ExclusiveAccessRegistrantsOnly),
            1
        ),
        expected
    );
    let all = read(&reserved(ReservationType::ExclusiveAccessAllRegistrants), 1);
    assert_eq!(all[8..16], [0; 8], "no key where all are holders");
    assert_eq!(all[21], 0x08);
    assert_eq!(read(&unit(), 1), [0; 8]);
}

#[test]
fn report_capabilities() {
    let mut state = unit();
    assert_eq!(read(&state, 2), [0, 8, 0x1d, 0xb0, 0xea, 0x01, 0, 0]);
    state.persistence = false;
    assert_eq!(read(&state, 2), [0, 8, 0x1c, 0xb0, 0xea, 0x01, 0, 0]);
    Arc::make_mut(&mut state.reservations).aptpl = true;
    assert_eq!(read(&state, 2)[3], 0xb1);
}

#[test]
fn read_full_status() {
    let id = transport_id::iscsi("iqn.2026-11.org.test:host1", [0x80, 0, 0, 0, 0, 1]);
    let data = read(&reserved(ReservationType::WriteExclusive), 3);
    let (first, second) = data[8..].split_at(24 + id.len());
    let length = data.len() as u8 - 8;
    assert_eq!(data[..8], [0, 0, 0, 2, 0, 0, 0, length]);
    assert_eq!(
        first[..16],
        [0, 0, 0, 0, 0, 0, 0, 0xa, 0, 0, 0, 0, 0x01, 0x01, 0, 0]
    );
    assert_eq!(first[16..24], [0, 0, 0, 1, 0, 0, 0, id.len() as u8]);
    assert_eq!(first[24..], *id);
    assert_eq!(second[12..14], [0, 0], "not a holder, so no type");
    let data = read(&reserved(ReservationType::WriteExclusiveAllRegistrants), 3);
    assert_eq!(
        data[8 + first.len() + 12..][..2],
        [0x01, 0x07],
        "each is a holder"
    );
}

#[test]
fn reserve_6_keeps_persistent_reserve_in_from_everybody() {
    let mut state = unit();
    apply::reserve(&mut state, &host(1)).unwrap();
    for action in 0..4 {
        let answer = ask(&state, &[0x5e, action, 0, 0, 0, 0, 0, 0, 8, 0], &[]);
        let conflict = CommandFailure::Status(Status::ReservationConflict);
        assert!(
            matches!(answer, QueryResult::Fail(found) if found == conflict),
            "{action}"
        );
    }
}

#[test]
fn every_service_action_is_what_its_code_says() {
    let (key, kind) = (0xa, ReservationType::ExclusiveAccess);
    let expect = |code, action| assert_eq!(out(code, 3, &list(0xa, 0xb, 0)), Ok(action));
    expect(0, super::register(0xa, 0xb));
    expect(1, Action::Reserve { key, kind });
    expect(2, Action::Release { key, kind });
    expect(3, Action::Clear { key });
    let preempt = |abort| Action::Preempt {
        key,
        victim: 0xb,
        kind: Some(kind),
        abort,
    };
    expect(4, preempt(false));
    expect(5, preempt(true));
    expect(6, super::register_anyway(0xb));
}

#[test]
fn replace_lost_reservation_and_unknown_actions_are_invalid() {
    for code in 8..0x20 {
        refuses(code, 3, &list(0xa, 0xb, 0), in_cdb(1, 4));
    }
}

#[test]
fn scope_and_type_must_exist_where_they_matter() {
    for code in [1, 2] {
        assert_eq!(
            out(code, 0x13, &list(0xa, 0, 0)),
            Err(in_cdb(2, 7)),
            "SCOPE"
        );
        for kind in [0, 2, 4, 9, 15] {
            assert_eq!(out(code, kind, &list(0xa, 0, 0)), Err(in_cdb(2, 3)), "TYPE");
        }
    }
    for code in [0, 3, 6] {
        assert!(
            out(code, 0xff, &list(0xa, 0, 0)).is_ok(),
            "ignored by {code}"
        );
    }
}

#[test]
fn the_list_is_as_long_as_it_says() {
    let whole = list(0xa, 0xb, 0);
    for len in 0..24 {
        refuses(0, 0, &whole[..len], PARAMETER_LENGTH);
    }
    let longer = [&whole[..], &[0; 4]].concat();
    refuses(0, 0, &longer, PARAMETER_LENGTH);
    let huge = [0x5f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0];
    let answer = ask(&unit(), &huge, &whole);
    assert!(
        matches!(answer, QueryResult::Fail(PARAMETER_LENGTH)),
        "{answer:?}"
    );
}

#[test]
fn spec_i_pt_takes_transport_ids() {
    let ids = [host(2).initiator.clone(), host(3).initiator.clone()].concat();
    let expected = Action::Register(Register {
        key: Some(0),
        new_key: 0xa,
        siblings: Vec::new(),
        specified: Some(vec![host(2), host(3)]),
        aptpl: false,
    });
    assert_eq!(out(0, 0, &specifying(&ids)), Ok(expected));
    for code in 1..7 {
        refuses(code, 3, &specifying(&ids), in_list(20, Some(3)));
    }
}

#[test]
fn spec_i_pt_cut_anywhere_is_an_error() {
    let whole = specifying(&host(2).initiator);
    for len in 0..whole.len() {
        refuses(0, 0, &whole[..len], PARAMETER_LENGTH);
    }
    // The same with a length that agrees, so that a TransportID itself is cut.
    let id = &host(2).initiator;
    for len in 1..id.len() {
        refuses(0, 0, &specifying(&id[..len]), PARAMETER_LENGTH);
    }
}

#[test]
fn a_transport_id_that_is_not_valid_is_pointed_at() {
    let mut ids = [host(2).initiator.clone(), host(3).initiator.clone()].concat();
    let second = host(2).initiator.len();
    ids[second] = 0x06;
    let at = 28 + second as u16;
    refuses(0, 0, &specifying(&ids), in_list(at, None));
}

#[test]
fn all_tg_pt_means_every_port_of_the_target() {
    let found = registration(&list(0, 0xa, 0x05));
    assert_eq!(found.siblings, [by_port(1, 2)]);
    assert!(found.aptpl);
    let mut both = specifying(&host(2).initiator);
    both[20] |= 0x04;
    let found = registration(&both);
    assert_eq!(found.specified, Some(vec![host(2), by_port(2, 2)]));
}

#[test]
fn register_and_move_names_a_port_and_an_initiator() {
    let id = host(2).initiator.clone();
    let Ok(Action::Move(found)) = out(7, 0, &moving(2, &id)) else {
        panic!("not a move");
    };
    assert_eq!(found.to, by_port(2, 2));
    assert_eq!((found.key, found.new_key), (0xa, 0xb));
    assert!(found.unregister && found.aptpl);
    assert_eq!(
        out(7, 0, &moving(3, &id)),
        Err(in_list(18, None)),
        "no such port"
    );
}

#[test]
fn register_and_move_cut_anywhere_is_an_error() {
    let id = host(2).initiator.clone();
    let whole = moving(2, &id);
    for len in 0..whole.len() {
        refuses(7, 0, &whole[..len], PARAMETER_LENGTH);
    }
    for len in 0..id.len() {
        refuses(7, 0, &moving(2, &id[..len]), PARAMETER_LENGTH);
    }
    let two = [&id[..], &id[..]].concat();
    refuses(7, 0, &moving(2, &two), PARAMETER_LENGTH);
}

fn apply_to(state: &mut UnitState, action: Action) -> Result<Vec<Effect>, CommandFailure> {
    state.apply(&OwnerRequest {
        core: CoreId(0),
        id: 1,
        nexus: Some(host(1)),
        change: UnitChange::PersistentReserve(action),
    })
}

#[test]
fn aptpl_is_refused_where_nothing_can_be_kept() {
    let mut state = unit();
    state.persistence = false;
    let action = out(0, 0, &list(0, 0xa, 0x01)).unwrap();
    assert_eq!(apply_to(&mut state, action), Err(in_list(20, Some(0))));
    let action = out(7, 0, &moving(2, &host(2).initiator)).unwrap();
    assert_eq!(apply_to(&mut state, action), Err(in_list(17, Some(0))));
}

#[test]
fn preempt_and_abort_aborts_before_it_tells() {
    let mut state = reserved(ReservationType::WriteExclusive);
    let action = out(5, 1, &list(0xa, 0xb, 0)).unwrap();
    let expected = vec![
        Effect::Abort(EffectScope::Only(vec![host(2)])),
        Effect::Attention(EffectScope::Only(vec![host(2)]), 0x2a05),
    ];
    assert_eq!(apply_to(&mut state, action), Ok(expected));
}

#[test]
fn refusals_are_told_as_the_standard_has_them() {
    let mut state = reserved(ReservationType::WriteExclusive);
    let mut found = |code, kind, list: &[u8]| apply_to(&mut state, out(code, kind, list).unwrap());
    let check = |code| {
        Err(CommandFailure::Check(Sense::new(
            SenseKey::IllegalRequest,
            code,
        )))
    };
    let conflict = Err(CommandFailure::Status(Status::ReservationConflict));
    assert_eq!(found(2, 3, &list(0xa, 0, 0)), check(0x2604));
    assert_eq!(found(4, 1, &list(0xa, 0, 0)), Err(in_list(8, None)));
    assert_eq!(found(4, 0, &list(0xa, 0xa, 0)), Err(in_cdb(2, 3)));
    assert_eq!(found(1, 1, &list(0xb, 0, 0)), conflict);
    assert_eq!(
        found(0, 0, &specifying(&host(2).initiator)),
        conflict,
        "key 0 is not A"
    );
    let own = moving(1, &host(1).initiator);
    assert_eq!(found(7, 0, &own), Err(in_list(24, None)));
}
