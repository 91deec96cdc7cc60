//! What a port of VN2VN asks its neighbours on behalf of other programs.

use super::rig::{Rig, ms};
use crate::port::{FcQuery, FcQueryError};
use crate::wire::ct::name_server::NameServerRequest;
use crate::wire::els::Els;
use crate::wire::names::FcId;

const TARGET: FcId = FcId(2);

fn echo(to: FcId) -> FcQuery {
    FcQuery::els(to, Els::Echo(vec![1, 2]).encode()).unwrap()
}

fn ask(rig: &mut Rig, query: FcQuery) -> Result<(), FcQueryError> {
    let asked = rig.initiator.port.query(rig.now, query);
    asked.map(drop)
}

fn answered(rig: &mut Rig) -> Option<Result<Vec<u8>, FcQueryError>> {
    let answered = rig.initiator.port.answered_query();
    answered.map(|(_, outcome)| outcome)
}

#[test]
fn a_neighbour_answers() {
    let mut rig = Rig::up();
    ask(&mut rig, echo(TARGET)).unwrap();
    rig.pass(1);
    assert_eq!(answered(&mut rig), Some(Ok(vec![2, 0, 0, 0, 1, 2])));
    assert_eq!(rig.traced(), "  1900 i: ECHO\n  1900 t: LS_ACC");
    let rls = FcQuery::els(TARGET, Els::Rls(TARGET).encode()).unwrap();
    ask(&mut rig, rls).unwrap();
    rig.pass(1);
    assert_eq!(answered(&mut rig).unwrap().unwrap().len(), 28);
    assert_eq!(rig.initiator.told, ["online 000001", "up 0"]);
}

#[test]
fn there_is_no_fabric_to_ask() {
    let mut rig = Rig::up();
    let absent = ask(&mut rig, echo(FcId(9)));
    assert_eq!(absent, Err(FcQueryError::NoPort(FcId(9))));
    let name = FcQuery::ct(NameServerRequest::GpnId(TARGET).encode()).unwrap();
    assert_eq!(ask(&mut rig, name), Err(FcQueryError::NoFabric));
    assert_eq!(rig.traced(), "");
}

#[test]
fn an_answer_is_taken_whatever_the_port_is_used_for_by_then() {
    let mut rig = Rig::up();
    ask(&mut rig, echo(TARGET)).unwrap();
    let mut rig = rig.rested();
    rig.pass(1);
    assert!(matches!(answered(&mut rig), Some(Ok(_))));
}

#[test]
fn a_link_that_goes_down_ends_what_was_asked() {
    let mut rig = Rig::up();
    rig.lose.push("i: ECHO");
    ask(&mut rig, echo(TARGET)).unwrap();
    rig.pass(1);
    rig.initiator.port.link(ms(1950), false);
    assert_eq!(answered(&mut rig), Some(Err(FcQueryError::Ended)));
    let down = ask(&mut rig, echo(TARGET));
    assert_eq!(down, Err(FcQueryError::Offline));
}
