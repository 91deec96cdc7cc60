use super::*;

fn told(over: &[&str]) -> String {
    let ways: Result<Vec<_>, _> = over.iter().map(|way| RacedTransport::parse(way)).collect();
    serve_options(&ways.unwrap(), false, Path::new("/f")).join(" ")
}

#[test]
fn the_target_has_each_transport_once() {
    let all = "--listen 127.0.0.1:0 --fcoe cable:/f/cable --iser";
    assert_eq!(told(&["iser", "fcoe", "iscsi", "iser"]), all);
    assert_eq!(told(&["fcoe", "fcoe"]), "--fcoe cable:/f/cable");
}

#[test]
fn crcs_are_waived_at_both_ends() {
    let waived = "--listen 127.0.0.1:0 --iser-crc off --iser";
    assert_eq!(told(&["iscsi", "iser?crc=off"]), waived);
}

#[test]
fn options_go_to_the_address_of_their_transport() {
    let way = RacedTransport::parse("iscsi?digests=crc32c").unwrap();
    let address = way.address("iscsi://a/iqn.x/0");
    assert_eq!(address.as_deref(), Some("iscsi://a/iqn.x/0?digests=crc32c"));
    assert_eq!(way.address("iser://a/iqn.x/0"), None);
    assert!(RacedTransport::parse("nvme").is_err());
}
