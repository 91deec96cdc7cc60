use super::*;

#[test]
fn a_straight_line_is_found_again() {
    let points = [512, 4096, 65_536].map(|bytes| (bytes, 1.0 + f64::from(bytes) * 2e-4));
    let line = Line::fit(&points).unwrap();
    assert!((line.fixed_us - 1.0).abs() < 1e-9, "{line:?}");
    assert!((line.byte_ns - 0.2).abs() < 1e-9, "{line:?}");
    assert!((line.us(262_144) - 53.4288).abs() < 1e-6);
}

#[test]
fn one_size_is_no_line() {
    assert_eq!(Line::fit(&[(512, 1.0)]), None);
    assert_eq!(Line::fit(&[(512, 1.0), (512, 1.1)]), None);
    assert!(tables(&[], 10.0).is_empty());
}

/// 1448 bytes of a stream take 1538 of wire at MTU 1500, and 8948 take 9038 at 9000.
#[test]
fn headers_are_counted() {
    let [small, large] = NETWORKS;
    assert_eq!(small.segments(1448 - PDU), 1.0);
    assert_eq!(small.wire(1448 - PDU), 1538.0);
    assert_eq!(large.wire(8948 - PDU), 9038.0);
    assert!((small.iops(10.0, 1448 - PDU) - 10e9 / 8.0 / 1538.0).abs() < 1e-6);
}

/// What one core can do meets what the link can carry where the model says so.
#[test]
fn one_core_fills_a_link_from_its_size_on() {
    let line = Line {
        fixed_us: 1.0,
        byte_ns: 0.2,
    };
    let bytes = NETWORKS[0].one_core_fills(10.0, line).unwrap().round() as u32;
    let cores = NETWORKS[0].iops(10.0, bytes) * line.us(bytes) / 1e6;
    assert!((cores - 1.0).abs() < 0.01, "{cores} cores at {bytes} bytes");
    let slow = Line {
        byte_ns: 1.0,
        ..line
    };
    assert_eq!(NETWORKS[0].one_core_fills(10.0, slow), None);
}

/// The outside check: a card with offload fills the wire as far as the model says it can, and
/// never further.
#[test]
fn the_seed_is_what_the_wire_allows() {
    for (bytes, iops) in SEED {
        let share = iops / SEED_NETWORK.iops(SEED_GBPS, bytes);
        assert!(share < 1.0, "{bytes}: {share}");
        assert!(share > 0.99 || bytes < 4096, "{bytes}: {share}");
    }
}
