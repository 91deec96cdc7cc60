//! A port at the interface of another VLAN than the fabric's is refused.

use ::io::ether::Place;

use super::super::vlan::check_by;

fn below(interface: &str) -> Option<(String, u16)> {
    match interface {
        "eth1.152" => Some(("eth1".to_owned(), 152)),
        "fabric" => Some(("eth2".to_owned(), 5)),
        _ => None,
    }
}

fn refused(name: &str, vlan: Option<u16>) -> Option<String> {
    let place = Place::Interface(name.to_owned());
    let checked = check_by(below, &place, vlan);
    checked.err().map(|error| error.to_string())
}

#[test]
fn only_the_vlan_of_the_fabric_will_do() {
    let told = refused("eth1.152", Some(153)).unwrap();
    assert!(told.contains("give --vlan 152, or use eth1,"), "{told}");
    assert!(refused("fabric", Some(152)).is_some());
    for (name, vlan) in [
        ("eth1.152", Some(152)),
        ("eth1.152", None),
        ("eth1", Some(153)),
        ("fabric", Some(5)),
    ] {
        assert_eq!(refused(name, vlan), None, "{name}");
    }
    let cable = Place::Cable("fabric".into());
    assert_eq!(check_by(below, &cable, Some(6)), Ok(()));
}
