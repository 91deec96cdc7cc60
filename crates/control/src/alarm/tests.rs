use super::*;

#[test]
fn each_cause_has_one_alarm_that_goes_alone() {
    let board = AlarmBoard::default();
    let secret = |at: &str| Alarm::new(AlarmKind::Secret, "it is gone").at(at);
    board.raise(secret("state:a"));
    board.raise(secret("state:b"));
    board.raise(secret("state:a"));
    board.raise(Alarm::new(AlarmKind::Tokens, "the disk is full").way_out("make room"));
    assert_eq!(board.list().len(), 3);
    board.clear(AlarmKind::Secret);
    let left = board.list();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].to_string(), "the disk is full: make room");
}

#[test]
fn a_kind_is_called_the_same_everywhere() {
    let kinds = [AlarmKind::PortIds, AlarmKind::Core, AlarmKind::Api];
    for kind in kinds {
        let written = serde_json::to_string(&kind).unwrap();
        assert_eq!(written, format!("{:?}", kind.name()));
    }
}
