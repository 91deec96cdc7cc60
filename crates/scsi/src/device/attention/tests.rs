use super::Attentions;
use crate::wire::asc;

fn drain(attentions: &mut Attentions) -> Vec<u16> {
    std::iter::from_fn(|| attentions.take()).collect()
}

#[test]
fn resets_come_before_everything_else() {
    let mut attentions = Attentions::default();
    assert!(attentions.establish(asc::CAPACITY_CHANGED));
    assert!(attentions.establish(asc::REPORTED_LUNS_DATA_CHANGED));
    assert!(attentions.establish(asc::BUS_DEVICE_RESET));
    let expected = [
        asc::BUS_DEVICE_RESET,
        asc::CAPACITY_CHANGED,
        asc::REPORTED_LUNS_DATA_CHANGED,
    ];
    assert_eq!(drain(&mut attentions), expected);
}

#[test]
fn a_greater_reset_replaces_a_lesser_one() {
    let mut attentions = Attentions::default();
    assert!(attentions.establish(asc::NEXUS_LOSS));
    assert!(attentions.establish(asc::POWER_ON_OR_RESET));
    assert!(!attentions.establish(asc::BUS_DEVICE_RESET));
    assert_eq!(drain(&mut attentions), [asc::POWER_ON_OR_RESET]);
}

#[test]
fn the_same_condition_is_told_once() {
    let mut attentions = Attentions::default();
    assert!(attentions.establish(asc::MODE_PARAMETERS_CHANGED));
    assert!(!attentions.establish(asc::MODE_PARAMETERS_CHANGED));
    assert_eq!(attentions.len(), 1);
    attentions.clear(asc::MODE_PARAMETERS_CHANGED);
    assert!(attentions.is_empty());
}
