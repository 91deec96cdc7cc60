//! What units say of themselves, as `iscsi-inq` sees it.

use tests::client::Client;
use tests::initiator::Data;
use tests::server::{self, Server};

use crate::{file, lunar_says, must, says};

/// The unit serial number and device identification VPD pages.
fn pages(server: &Server) -> [String; 2] {
    let page = |page| must("iscsi-inq", &["-e", "1", "-c", page, server.address(0)]);
    ["128", "131"].map(page)
}

#[test]
fn vendor_product_and_serial_are_as_told() {
    let options = [
        ["--vendor", "ACME"],
        ["--product", "Moon Disk"],
        ["--serial", "S-1234"],
    ];
    let server = Server::start("named", &["ram:16M"], &options.concat()).unwrap();
    let text = must("iscsi-inq", &[server.address(0)]);
    says(&text, &["Vendor:ACME    \n", "Product:Moon Disk       \n"]);
    says(&pages(&server)[0], &["S-1234"]);
}

#[test]
fn a_ram_disk_is_another_one_after_a_restart() {
    let first = Server::start("ram-identity", &["ram:16M"], &[]).unwrap();
    let before = pages(&first);
    first.kill().unwrap();
    let second = Server::start("ram-identity", &["ram:16M"], &[]).unwrap();
    let after = pages(&second);
    assert_ne!(before[0], after[0], "serial number");
    assert_ne!(before[1], after[1], "designators");
}

#[test]
fn a_file_stays_the_same() {
    let dir = tests::scratch("file-identity").unwrap();
    let volume = file(&dir, "disk?size=16M");
    let first = Server::start_in(&dir, &[&volume], &[]).unwrap();
    let before = pages(&first);
    first.kill().unwrap();
    let second = Server::start_in(&dir, &[&volume], &[]).unwrap();
    assert_eq!(before, pages(&second));
}

/// Serial number and designator of a LUN.
fn called(server: &Server, lun: usize) -> [String; 2] {
    let told = lunar_says(&["info", "--json", server.address(lun)]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    ["serial", "designator"].map(|key| told["unit"][key].as_str().unwrap().to_owned())
}

/// What the file behind `spelling` is called by a server that is started for it, and ended.
fn called_by(name: &str, spelling: &str, options: &[&str]) -> [String; 2] {
    let server = Server::start(name, &[spelling], options).unwrap();
    let called = called(&server, 0);
    server.kill().unwrap();
    called
}

#[test]
fn one_file_is_one_disk_however_it_is_spelled() {
    let dir = tests::scratch("file-spelled").unwrap();
    std::os::unix::fs::symlink("disk", dir.join("link")).unwrap();
    let first = called_by("spelled-0", &file(&dir, "disk?size=16M"), &[]);
    let plain = [
        "./disk",
        "../file-spelled/disk",
        "link",
        "disk?direct",
        "disk?readonly",
        "disk?sync&size=32M",
    ];
    let wrapped = format!("readonly(limit:iops=1000({}))", file(&dir, "disk"));
    let spellings = plain.iter().map(|name| file(&dir, name)).chain([wrapped]);
    for (number, spelling) in spellings.enumerate() {
        // A state directory of its own, another target and another LUN.
        let name = format!("spelled-{}", number + 1);
        let iqn = format!("iqn.2026-11.org.lunar:{name}");
        let spelling = format!("{number}={spelling}");
        let called = called_by(&name, &spelling, &["--iqn", &iqn]);
        assert_eq!(first, called, "{spelling}");
    }
    std::fs::rename(dir.join("disk"), dir.join("renamed")).unwrap();
    let renamed = called_by("spelled-renamed", &file(&dir, "renamed"), &[]);
    assert_eq!(first, renamed);
}

#[test]
fn two_files_of_one_name_are_two_disks() {
    let dir = tests::scratch("file-named").unwrap();
    let folders = ["a", "b"].map(|folder| dir.join(folder));
    let servers = folders.each_ref().map(|folder| {
        std::fs::create_dir(folder).unwrap();
        // As two users would: each in its folder, by the same words.
        let volume = "file:disk?size=16M";
        let lunar = server::binary().unwrap().display().to_string();
        let command = ["env", "--chdir", folder.to_str().unwrap(), &lunar].map(String::from);
        let options = ["--iqn", "iqn.2026-11.org.lunar:same"];
        Server::start_as(&command, folder, &[volume], &options).unwrap()
    });
    let [one, other] = servers.each_ref().map(|server| called(server, 0));
    assert!(one[0] != other[0] && one[1] != other[1], "{one:?}");
}

/// Another state directory would show one disk by two servers that know nothing of each other, so
/// nobody is told to take one.
#[test]
fn one_server_at_a_time_keeps_the_reservations_of_a_disk() {
    let dir = tests::scratch("kept-once").unwrap();
    std::fs::write(dir.join("disk"), [7; 1 << 20]).unwrap();
    let volume = file(&dir, "disk?readonly");
    let first = Server::start_in(&dir, &[&volume, "ram:1M"], &[]).unwrap();
    let other = ["--iqn", "iqn.2026-11.org.lunar:other"];
    let twice = Server::start_in(&dir, &[&volume], &other);
    let told = format!("{:#}", twice.expect_err("it is served twice"));
    let told = told.split(" said: ").last().unwrap();
    says(told, &["stop that server", "--serial 0=TEXT"]);
    assert!(!told.contains("--state-dir"), "{told}");
    let as_a_clone = ["--serial", "S-CLONE"];
    let clone = Server::start_in(&dir, &[&volume], &as_a_clone).unwrap();
    clone.stop_well().unwrap();
    first.stop_well().unwrap();
    let kept = std::fs::read_dir(dir.join("state")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn volumes_keep_their_numbers_when_one_is_left_out() {
    let dir = tests::scratch("numbered").unwrap();
    let two = format!("2={}", file(&dir, "two?size=16M"));
    let seven = format!("7={}", file(&dir, "seven?size=16M"));
    let serial = ["--serial", "7=S-7"];
    let server = Server::start_in(&dir, &[&two, &seven, "ram:16M"], &serial).unwrap();
    let luns: Vec<_> = server.luns.iter().map(|lun| lun.lun).collect();
    assert_eq!(luns, [2, 7, 8]);
    let before = called(&server, 1);
    says(&before[0], &["S-7"]);
    server.kill().unwrap();
    let server = Server::start_in(&dir, &[&seven], &serial).unwrap();
    assert_eq!((server.luns[0].lun, called(&server, 0)), (7, before));
    let list = must("iscsi-ls", &["-s", server.address(0)]);
    says(&list, &["Lun:7 "]);
}

#[test]
fn removable_and_block_size_show() {
    let options = ["--removable", "--block-size", "4096"];
    let server = Server::start("shown", &["ram:16M"], &options).unwrap();
    says(&must("iscsi-inq", &[server.address(0)]), &["Removable:1"]);
    let text = must("iscsi-readcapacity16", &[server.address(0)]);
    says(&text, &["LOGICAL BLOCK LENGTH IN BYTES:4096\n"]);
    assert_eq!(server.luns[0].block_size, 4096);
}

/// USED LBA MAPPING RESOURCE COUNT of the logical block provisioning log page (SBC-4 §6.4.5), which
/// counts in MiB.
fn used(client: &mut Client) -> u32 {
    let page = [0x4d, 0, 0x4c, 0, 0, 0, 0, 0, 64, 0];
    let told = client.good(&page, Data::In(64)).unwrap();
    assert_eq!(told[16..18], [0, 2], "{told:?}");
    u32::from_be_bytes(*told[20..].first_chunk().unwrap())
}

#[test]
fn what_a_ram_disk_uses_is_told() {
    let server = Server::start("usage", &["ram:64M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    assert_eq!(used(&mut client), 0);
    client.write(0, vec![1; 8192 * 512], false).unwrap();
    assert_eq!(used(&mut client), 4);
}
