//! What units say of themselves, as `iscsi-inq` sees it.

use tests::cdb;
use tests::client::Client;
use tests::initiator::Data;
use tests::server::Server;

use crate::must;

fn serial(server: &Server) -> String {
    page(server, "128")
}

fn page(server: &Server, page: &str) -> String {
    must("iscsi-inq", &["-e", "1", "-c", page, server.address(0)])
}

#[test]
fn vendor_product_and_serial_are_as_told() {
    let options = [
        "--vendor",
        "ACME",
        "--product",
        "Moon Disk",
        "--serial",
        "S-1234",
    ];
    let server = Server::start("named", &["ram:16M"], &options).unwrap();
    let text = must("iscsi-inq", &[server.address(0)]);
    assert!(text.contains("Vendor:ACME    \n"), "{text}");
    assert!(text.contains("Product:Moon Disk       \n"), "{text}");
    assert!(serial(&server).contains("S-1234"));
}

#[test]
fn a_ram_disk_is_another_one_after_a_restart() {
    let first = Server::start("ram-identity", &["ram:16M"], &[]).unwrap();
    let before = (serial(&first), page(&first, "131"));
    first.kill().unwrap();
    let second = Server::start("ram-identity", &["ram:16M"], &[]).unwrap();
    let after = (serial(&second), page(&second, "131"));
    assert_ne!(before.0, after.0, "serial number");
    assert_ne!(before.1, after.1, "designators");
}

#[test]
fn a_file_stays_the_same() {
    let dir = tests::scratch("file-identity").unwrap();
    let volume = format!("file:{}?size=16M", dir.join("disk").display());
    let first = Server::start_in(&dir, &[&volume], &[]).unwrap();
    let before = (serial(&first), page(&first, "131"));
    first.kill().unwrap();
    let second = Server::start_in(&dir, &[&volume], &[]).unwrap();
    assert_eq!(before, (serial(&second), page(&second, "131")));
}

#[test]
fn removable_and_block_size_show() {
    let options = ["--removable", "--block-size", "4096"];
    let server = Server::start("shown", &["ram:16M"], &options).unwrap();
    assert!(must("iscsi-inq", &[server.address(0)]).contains("Removable:1"));
    let text = must("iscsi-readcapacity16", &[server.address(0)]);
    assert!(
        text.contains("LOGICAL BLOCK LENGTH IN BYTES:4096\n"),
        "{text}"
    );
    assert_eq!(server.luns[0].block_size, 4096);
}

/// USED LBA MAPPING RESOURCE COUNT of the logical block provisioning log page (SBC-4 §6.4.5), which
/// counts in MiB.
fn used(client: &mut Client) -> u32 {
    let page = [0x4d, 0, 0x4c, 0, 0, 0, 0, 0, 64, 0];
    let told = client.command(&page, Data::In(64)).unwrap();
    assert_eq!(told.status, 0, "{told:?}");
    assert_eq!(told.data[16..18], [0, 2], "{told:?}");
    told.data[20..24]
        .iter()
        .fold(0, |sum, octet| sum << 8 | u32::from(*octet))
}

#[test]
fn what_a_ram_disk_uses_is_told() {
    let server = Server::start("usage", &["ram:64M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    assert_eq!(used(&mut client), 0);
    let write = cdb::write(0, 8192, false);
    let data = Data::Out(vec![1; 8192 * 512].into());
    assert_eq!(client.command(&write, data).unwrap().status, 0);
    assert_eq!(used(&mut client), 4);
}
