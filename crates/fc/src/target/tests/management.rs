//! Task management functions and the codes that answer them.

use scsi::task;

use crate::exchange::tests::pair::{Fate, LUN, Pair, REMOTE, all};
use crate::initiator::{Event, Function};

fn carried_out(function: Function) -> (Vec<task::Function>, Vec<String>) {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, function),
        Ok(())
    );
    pair.settle();
    let answered = matches!(
        pair.told[..],
        [Event::Managed {
            id: 5,
            response: Some(0),
            ..
        }]
    );
    assert!(answered, "{:?}", pair.told);
    (pair.managed.clone(), pair.traced())
}

#[test]
fn each_function_comes_to_the_device_server() {
    let table = [
        (Function::AbortTaskSet, task::Function::AbortTaskSet, "02"),
        (Function::ClearTaskSet, task::Function::ClearTaskSet, "04"),
        (
            Function::LogicalUnitReset,
            task::Function::LogicalUnitReset,
            "10",
        ),
        (Function::TargetReset, task::Function::TargetReset, "20"),
        (Function::ClearAca, task::Function::ClearAca, "40"),
    ];
    for (asked, came, flags) in table {
        let (managed, trace) = carried_out(asked);
        assert_eq!(managed, [came]);
        let command = format!("> CMND management {flags}");
        assert_eq!(trace, [command.as_str(), "< RSP 00 code 00"]);
    }
}

#[test]
fn commands_that_a_reset_covers_fail_and_later_ones_do_not() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    let reset = Function::LogicalUnitReset;
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, reset),
        Ok(())
    );
    pair.test(2);
    pair.settle();
    pair.finish_functions();
    pair.settle();
    let told = &pair.told;
    assert!(matches!(&told[..], [Event::Failed(failed), Event::Managed { .. }] if failed.id == 1));
}

#[test]
fn a_query_is_a_rec() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    let query = Function::QueryTask(1);
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, query),
        Ok(())
    );
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00", "> REC", "< LS_ACC"]);
    assert!(matches!(
        pair.told[..],
        [Event::Managed {
            response: Some(8),
            ..
        }]
    ));
}
