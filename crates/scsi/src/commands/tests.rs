use super::*;

/// A CDB of the row with nothing set but what names it.
pub(crate) fn blank(row: &CommandRow) -> [u8; 32] {
    let mut cdb = [0; 32];
    cdb[0] = row.opcode;
    cdb[1] = row.service_action.unwrap_or(0) as u8;
    cdb
}

/// The length of a CDB by its group code (SPC-5 §4.2.5.1).
fn length_by_group(opcode: u8) -> usize {
    match opcode >> 5 {
        0 => 6,
        1 | 2 => 10,
        4 => 16,
        5 => 12,
        group => panic!("group {group} of {opcode:02x}h"),
    }
}

#[test]
fn every_usage_mask_is_as_long_as_its_cdb() {
    for row in TABLE {
        assert_eq!(row.usage.len(), length_by_group(row.opcode), "{}", row.name);
        assert_eq!(row.usage[0], 0xff, "{}", row.name);
        if row.service_action.is_some() {
            assert_eq!(row.usage[1] & 0x1f, 0x1f, "{}", row.name);
        }
        assert_eq!(row.usage.last(), Some(&0), "CONTROL of {}", row.name);
    }
}

#[test]
fn rows_are_sorted_so_that_those_of_an_opcode_stand_together() {
    let keys: Vec<_> = TABLE
        .iter()
        .map(|row| (row.opcode, row.service_action))
        .collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:02x?}");
}

#[test]
fn every_row_is_found_by_its_own_cdb() {
    for row in TABLE {
        let found = find(&blank(row)).unwrap();
        assert!(
            std::ptr::eq(found, row),
            "{} instead of {}",
            found.name,
            row.name
        );
    }
}

#[test]
fn fields_lie_inside_the_cdb_and_are_evaluated() {
    for row in TABLE {
        let length = match row.length {
            Length::None => None,
            Length::Allocation(f) | Length::Parameters(f) | Length::Blocks(f) => Some(f),
        };
        for field in [row.lba, length].into_iter().flatten() {
            let (at, len) = (usize::from(field.at), usize::from(field.len));
            let mask = &row.usage[at..at + len];
            assert!(mask[1..].iter().all(|&byte| byte == 0xff), "{}", row.name);
            assert!(matches!(mask[0], 0xff | 0x1f), "{}", row.name);
        }
    }
}

#[test]
fn each_bit_outside_the_mask_is_refused_with_a_pointer_to_it() {
    for row in TABLE {
        for at in 1..row.usage.len() {
            for bit in (0..8).filter(|bit| row.usage[at] & 1 << bit == 0) {
                let mut cdb = blank(row);
                cdb[at] |= 1 << bit;
                let sense = find(&cdb).unwrap_err();
                assert_eq!(
                    sense,
                    Sense::cdb_field(at as u16, Some(bit)),
                    "{}",
                    row.name
                );
            }
        }
    }
}

#[test]
fn parameter_lengths_are_those_of_the_row() {
    for row in TABLE {
        if let (Handler::Parameters(length, _), Length::Parameters(field)) =
            (row.handler, row.length)
        {
            let mut cdb = blank(row);
            field.write(&mut cdb, u64::MAX);
            assert!(length(&cdb) <= 64 << 10, "{}", row.name);
            field.write(&mut cdb, 0x5a);
            assert_eq!(length(&cdb), 0x5a, "{}", row.name);
            assert_eq!(row.parameter_length(&cdb), 0x5a, "{}", row.name);
        }
    }
}

#[test]
fn unknown_opcode() {
    let mut cdb = [0; 32];
    cdb[0] = 0xc1;
    let sense = find(&cdb).unwrap_err();
    assert_eq!((sense.key, sense.code), (SenseKey::IllegalRequest, 0x2000));
}

#[test]
fn unknown_service_action_is_pointed_at() {
    let mut cdb = [0; 32];
    (cdb[0], cdb[1]) = (0x5e, 0x1f);
    assert_eq!(find(&cdb).unwrap_err(), Sense::cdb_field(1, Some(4)));
}

#[test]
fn naca_is_refused() {
    let cdb = [0x00, 0, 0, 0, 0, 0x04];
    assert_eq!(find(&cdb).unwrap_err(), Sense::cdb_field(5, Some(2)));
}

#[test]
fn bytes_after_the_cdb_do_not_count() {
    let mut cdb = [0xff; 32];
    cdb[..6].fill(0);
    assert_eq!(find(&cdb).unwrap().name, "TEST UNIT READY");
}

#[test]
fn read6_has_a_21_bit_address_and_zero_means_256_blocks() {
    let cdb = [0x08, 0x1f, 0xff, 0xfe, 0, 0];
    let row = find(&cdb).unwrap();
    assert_eq!(row.extent(&cdb), Extent::new(0x1f_fffe, 256));
    let cdb = [0x08, 0, 0, 0, 7, 0];
    assert_eq!(row.extent(&cdb), Extent::new(0, 7));
}

#[test]
fn read10_of_zero_blocks_is_of_zero_blocks() {
    let cdb = [0x28, 0, 0, 0, 0, 9, 0, 0, 0, 0];
    assert_eq!(find(&cdb).unwrap().extent(&cdb), Extent::new(9, 0));
}

#[test]
fn starting_and_allowing_pass_a_reservation_where_stopping_and_preventing_do_not() {
    let access = |cdb: &[u8]| find(cdb).unwrap().access_for(cdb);
    assert_eq!(access(&[0x1b, 0, 0, 0, 0x01, 0]), Access::Any);
    assert_eq!(access(&[0x1b, 0, 0, 0, 0x00, 0]), Access::Write);
    assert_eq!(access(&[0x1b, 0, 0, 0, 0x31, 0]), Access::Write);
    assert_eq!(access(&[0x1e, 0, 0, 0, 0x00, 0]), Access::Any);
    assert_eq!(access(&[0x1e, 0, 0, 0, 0x01, 0]), Access::Write);
    assert_eq!(access(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Access::Write);
}
