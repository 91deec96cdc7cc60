//! Volumes that grow while they are served: initiators are told.

use std::fs::File;
use std::thread;
use std::time::Duration;

use scsi::wire::lun::Lun;
use tests::client::Client;
use tests::initiator::{Data, Settings};
use tests::server::Server;

use crate::{LoopDevice, file, run};

const MIB: u64 = 1 << 20;

#[test]
fn growth_of_a_file_is_told() {
    let dir = tests::scratch("growth-file").unwrap();
    let disk = File::create(dir.join("disk")).unwrap();
    disk.set_len(MIB).unwrap();
    grows("growth-file", &file(&dir, "disk"), || {
        disk.set_len(2 * MIB).unwrap();
    });
}

#[test]
fn a_volume_that_is_not_there_at_the_start_comes_later() {
    let dir = tests::scratch("absent").unwrap();
    let volumes = ["ram:16M", &file(&dir, "disk")];
    let server = Server::start_in(&dir, &volumes, &["--wait", "1s"]).unwrap();
    let is_away = "its LUN is not ready until the volume is there";
    server.has_logged(is_away).unwrap();
    let sizes = [0, 1].map(|at| server.luns[at].size_bytes);
    assert_eq!(sizes, [16 << 20, 0]);
    let mut beside = Client::log_in(&server.luns[0], 1).unwrap();
    let settings = Settings::new(2, &server.luns[1].target);
    let mut client = Client::connect(server.luns[1].portals[0].parse().unwrap(), settings).unwrap();
    client.lun = Lun::from_index(1);
    let mut told = || {
        let ended = client.command(&[0; 6], Data::None).unwrap();
        (ended.status != 0).then(|| (ended.sense[2] & 0x0f, ended.sense[12], ended.sense[13]))
    };
    assert_eq!(told(), Some((6, 0x29, 0)), "POWER ON");
    assert_eq!(told(), Some((2, 4, 0)), "NOT READY");
    let disk = File::create(dir.join("disk")).unwrap();
    disk.set_len(MIB).unwrap();
    server.has_logged("is back").unwrap();
    assert_eq!(told(), Some((6, 0x29, 0)), "it is another unit");
    assert_eq!(told(), Some((6, 0x3f, 0x0e)), "LUNs have changed");
    assert_eq!(told(), None);
    assert_eq!(capacity(&mut client), MIB);
    let luns_changed = beside.command(&[0; 6], Data::None).unwrap();
    assert_eq!(luns_changed.sense[12..14], [0x3f, 0x0e]);
}

#[test]
fn growth_of_a_block_device_is_told() {
    let path = tests::scratch("growth-device").unwrap().join("disk");
    let disk = File::create(&path).unwrap();
    disk.set_len(MIB).unwrap();
    let Some(device) = LoopDevice::new(&path) else {
        return;
    };
    grows("growth-device", &device.address(), || {
        disk.set_len(2 * MIB).unwrap();
        // Other tests have loop devices too, and the kernel refuses while it sees to one.
        let told = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(20));
            run("losetup", &["--set-capacity", &device.0]).good()
        });
        assert!(told, "the loop device does not learn its size");
    });
}

fn grows(name: &str, address: &str, grow: impl FnOnce()) {
    let server = Server::start(&format!("{name}-server"), &[address], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    assert_eq!(capacity(&mut client), MIB);
    grow();
    let told = (0..200).find_map(|_| {
        client.exchange(Duration::from_millis(100)).unwrap();
        let ended = client.command(&[0; 6], Data::None).unwrap();
        (ended.status != 0).then_some(ended.sense)
    });
    let told = told.expect("nobody is told");
    assert_eq!((told[2] & 0xf, told[12], told[13]), (0x6, 0x2a, 0x09));
    assert_eq!(capacity(&mut client), 2 * MIB);
}

fn capacity(client: &mut Client) -> u64 {
    let mut read_capacity = [0; 16];
    read_capacity[..2].copy_from_slice(&[0x9e, 0x10]);
    read_capacity[13] = 32;
    let data = client.good(&read_capacity, Data::In(32)).unwrap();
    let last = u64::from_be_bytes(*data.first_chunk().unwrap());
    let block_size = u32::from_be_bytes(*data[8..].first_chunk().unwrap());
    (last + 1) * u64::from(block_size)
}
