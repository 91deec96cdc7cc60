//! Faults that can be are read as they are meant; the others are told with what there is.

use block::fault::{FailureRule, Faults};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use scsi::medium::MediumError;

use super::Address;

#[test]
fn what_a_fault_cannot_do_is_told_with_what_there_is() {
    let wrong = [
        "often",
        "read=often",
        "read=enospc@1G",
        "write=1.5",
        "write=nan",
        "write=eio@often",
        "write=eio@1Q",
        "write=0.5@1G",
        "flush",
        "seed",
        "seed=-1",
        "torn",
        "torn=1,write=1",
        "seed=7",
        "read=1,read=0",
        "read=1,",
        "read=%31",
    ];
    let refusals = wrong.map(|fault| {
        let address = format!("fault:{fault}(ram:1M)");
        address.parse::<Address>().unwrap_err().to_string()
    });
    insta::assert_snapshot!(refusals.join("\n\n"));
}

#[test]
fn what_a_fault_can_do_is_taken_as_it_is_meant() {
    let faults = |text: &str| match text.parse() {
        Ok(Address::Fault { faults, .. }) => faults,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        faults("fault:read=1e-4,write=enospc@10G,flush=gone,torn,seed=7(ram:1G)"),
        Faults {
            read: Some(FailureRule::Seldom(1e-4)),
            write: Some(FailureRule::After(10 << 30, MediumError::NoSpace)),
            flush: Some(FailureRule::After(0, MediumError::Gone)),
            torn: true,
            seed: 7,
        }
    );
    let read = faults("fault:read=eio@1k(ram:1G)").read;
    assert_eq!(read, Some(FailureRule::After(1024, MediumError::Read)));
}

pub(super) fn any_faults() -> impl Strategy<Value = Faults> {
    let failing = |errors: Vec<MediumError>| {
        prop_oneof![
            (0.0..=1.0).prop_map(FailureRule::Seldom),
            (any::<u64>(), select(errors)).prop_map(|(n, error)| FailureRule::After(n, error)),
        ]
    };
    let read = failing(vec![MediumError::Read, MediumError::Gone]);
    let write = || {
        failing(vec![
            MediumError::Write,
            MediumError::NoSpace,
            MediumError::Gone,
        ])
    };
    let kinds = (read, option::of(write()), option::of(write()));
    (kinds, any::<bool>(), any::<u64>()).prop_map(|((read, write, flush), torn, seed)| Faults {
        read: Some(read),
        write,
        flush,
        torn: torn && write.is_some(),
        seed,
    })
}
