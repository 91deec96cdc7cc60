//! Whatever a peer sends is answered: never a panic, and never more than can be asked for.

use proptest::prelude::*;

use crate::commands::{CommandRow, Handler, QueryResult, TABLE, find};
use crate::owner::UnitChange;
use crate::query::test_unit::{TestQuery, nexus, unit};
use crate::unit_settings::apply;
use crate::wire::lun::Lun;

/// A CDB of one of the rows, with any value in each of its fields.
fn cdb() -> impl Strategy<Value = (&'static CommandRow, Vec<u8>)> {
    let row = (0..TABLE.len()).prop_map(|at| &TABLE[at]);
    (row, any::<[u8; 16]>()).prop_map(|(row, noise)| {
        let mut cdb: Vec<_> = row
            .usage
            .iter()
            .zip(noise)
            .map(|(mask, noise)| mask & noise)
            .collect();
        cdb[0] = row.opcode;
        if let Some(action) = row.service_action {
            cdb[1] = cdb[1] & 0xe0 | action as u8;
        }
        (row, cdb)
    })
}

/// Parameter lists that look like mode parameters as often as not.
fn parameters() -> impl Strategy<Value = Vec<u8>> {
    let pages = prop::sample::select(vec![0x01, 0x02, 0x08, 0x0a, 0x4a, 0x1c, 0x3f]);
    let page = (pages, 0u8..40, prop::collection::vec(any::<u8>(), 0..40));
    let page = page.prop_map(|(code, length, rest)| [&[code, length][..], &rest].concat());
    let header = prop::sample::select(vec![vec![0; 4], vec![0, 0, 0, 8], vec![0; 8]]);
    let pages = prop::collection::vec(page, 0..3);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        (header, pages).prop_map(|(header, pages)| [header, pages.concat()].concat()),
    ]
}

proptest! {
    #[test]
    fn a_cdb_within_its_mask_is_found((row, cdb) in cdb()) {
        prop_assert!(std::ptr::eq(find(&cdb).unwrap(), row));
    }

    #[test]
    fn any_bytes_are_a_command_or_an_error(cdb: [u8; 16]) {
        if let Ok(row) = find(&cdb) {
            prop_assert_eq!(row.opcode, cdb[0]);
        }
    }

    #[test]
    fn any_command_is_answered((row, cdb) in cdb(), parameters in parameters(), there: bool) {
        prop_assume!(!matches!(row.handler, Handler::Medium(_)));
        let mut unit = unit();
        let answer = TestQuery {
            parameters: &parameters,
            unit: there.then_some(&unit),
            lun: Lun::from_index(if there { 0 } else { 5 }),
            ..TestQuery::new(&cdb, &unit)
        }
        .answer();
        match answer {
            QueryResult::Data(data) => prop_assert!(data.len() <= 64 << 10),
            QueryResult::Change(UnitChange::Setting(setting))
            | QueryResult::ChangeAndFlush(UnitChange::Setting(setting)) => {
                let _ = apply(&mut unit, &nexus(1).identity, &setting);
            }
            _ => {}
        }
    }
}
