use super::*;

#[test]
fn each_port_has_the_first_wwpn_that_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ClaimDir::new(dir.path()).unwrap();
    let mut names = FurtherPlaces::default();
    (names[0], names[1]) = (Some(Wwn(7)), Some(Wwn(9)));
    let first = claim(&folder, names).unwrap();
    let second = claim(&folder, names).unwrap();
    assert_eq!((first.0, second.0), (Wwn(7), Wwn(9)));
    let refused = claim(&folder, names).unwrap_err().to_string();
    assert!(refused.contains("00:00:00:00:00:00:00:09"), "{refused}");
    assert!(refused.contains("npiv=WWPN+WWPN"), "{refused}");
    drop(first);
    assert_eq!(claim(&folder, names).unwrap().0, Wwn(7));
}
