use super::Designation;

#[test]
fn the_identity_decides() {
    let disk = Designation::of_volume("file 1");
    assert_eq!(disk, Designation::of_volume("file 1"));
    let other = Designation::of_volume("file 2");
    assert!(disk.naa != other.naa && disk.serial != other.serial);
}

#[test]
fn the_serial_number_of_before_gives_back_the_designator() {
    let disk = Designation::of_volume("file 1");
    assert_eq!(disk, Designation::of_serial(disk.serial.clone()));
}

#[test]
fn what_is_drawn_does_not_last() {
    assert!(!Designation::passing([7; 8]).lasts);
    assert!(Designation::of_serial("S1".into()).lasts);
}

#[test]
fn the_designator_is_locally_assigned() {
    assert_eq!(Designation::of_volume("file 1").naa[0] >> 4, 3);
}
