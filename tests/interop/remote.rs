//! A unit of another target as a volume: served again, waited for, followed, refused.

mod keys;
mod killed;
mod once;
mod redirector;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use iscsi::wire::bhs::{BHS_LEN, Bhs, Opcode};
use tests::client::Client;
use tests::server::{self, Server};

pub(crate) use self::once::has_seen;
use self::redirector::Redirector;
use crate::{SECRETS, file, lunar, proving, qemu, refused, says};

#[test]
fn a_unit_elsewhere_is_served_again() {
    let back = Server::start("remote-back", &["ram:64M"], &[]).unwrap();
    qemu::copies("remote-front", back.address(0), &[]);
}

#[test]
fn a_target_that_was_killed_is_waited_for_and_nothing_is_lost() {
    let dir = tests::scratch("remote-killed").unwrap();
    let volume = file(&dir, "disk?size=16M");
    let mut back = Server::start_in(&dir, &[&volume], &["--iqn", TARGET]).unwrap();
    let portal = back.luns[0].portals[0].clone();
    let front = Server::start("remote-waiting", &[back.address(0)], &[]).unwrap();
    let mut client = Client::log_in(&front.luns[0], 1).unwrap();
    for round in 1..=6_u8 {
        write(&mut client, round);
        back.kill().unwrap();
        let (dir, volume, portal) = (dir.clone(), volume.clone(), portal.clone());
        let again = thread::spawn(move || restart(&dir, &volume, &portal));
        // Asked for while there is no target.
        write(&mut client, 100 + round);
        back = again.join().unwrap();
        for written in (1..=round).flat_map(|round| [round, 100 + round]) {
            let read = client.read(written.into(), 1).unwrap();
            assert_eq!(read[..], [written; 512]);
        }
    }
}

const TARGET: &str = "iqn.2026-11.org.lunar.test:killed";

fn restart(dir: &Path, volume: &str, portal: &str) -> Server {
    let options = ["--iqn", TARGET, "--listen", portal];
    Server::start_in(dir, &[volume], &options).unwrap()
}

/// Writes the block of this number with this byte, durably.
fn write(client: &mut Client, number: u8) {
    client.write(number.into(), [number; 512], true).unwrap();
}

#[test]
fn a_target_that_moves_is_followed() {
    let dir = tests::scratch("remote-moved").unwrap();
    let volume = file(&dir, "disk?size=1M");
    let start = || Server::start_in(&dir, &[&volume], &["--iqn", TARGET]).unwrap();
    let back = start();
    let redirector = Redirector::start(&back.luns[0].portals[0]);
    let address = format!("iscsi://{}/{TARGET}/0", redirector.portal);
    let front = Server::start("remote-following", &[&address], &[]).unwrap();
    let mut client = Client::log_in(&front.luns[0], 1).unwrap();
    write(&mut client, 1);
    back.kill().unwrap();
    let back = start();
    redirector.move_to(&back.luns[0].portals[0]);
    write(&mut client, 2);
    for number in [1, 2_u8] {
        let read = client.read(number.into(), 1).unwrap();
        assert_eq!(read[..], [number; 512]);
    }
}

#[test]
fn both_sides_prove_themselves_and_every_pdu_has_its_digests() {
    let dir = tests::scratch("remote-proven").unwrap();
    let back = proving("remote-proving", "ram:64M");
    let address = back.address(0).replace("iscsi://", "iscsi://alice@");
    let address = format!("{address}?mutual&digests=crc32c&timeout=5s");
    let front = serve_with(&dir, &address, SECRETS[1]).unwrap();
    qemu::copies("remote-proven-front", front.address(0), &[]);
    let wrong = serve_with(&dir, &address, "notthetargetsown");
    let said = format!("{:#}", wrong.unwrap_err());
    says(&said, &["the target failed mutual CHAP"]);
}

fn serve_with(dir: &Path, address: &str, mutual: &str) -> anyhow::Result<Server> {
    let command = [
        "env".to_owned(),
        format!("LUNAR_SECRET={}", SECRETS[0]),
        format!("LUNAR_MUTUAL_SECRET={mutual}"),
        server::binary()?.display().to_string(),
    ];
    Server::start_as(&command, dir, &[address], &[])
}

#[test]
fn who_ends_logs_out() {
    let back = Server::start("remote-left", &["ram:1M"], &[]).unwrap();
    let portal = &back.luns[0].portals[0];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let between = listener.local_addr().unwrap().to_string();
    let address = back.address(0).replace(portal, &between);
    let composed = format!("stats(concat({address},ram:1M))");
    let target = portal.clone();
    // The session that asks what the unit is also uses it.
    let heard = thread::spawn(move || relay(&listener, &target));
    let front = Server::start("remote-leaving", &[&composed], &["--threads", "1"]).unwrap();
    let mut client = Client::log_in(&front.luns[0], 1).unwrap();
    write(&mut client, 1);
    assert_eq!(front.stop().unwrap().code(), Some(0));
    let bytes = heard.join().unwrap();
    let last = Bhs(*bytes.last_chunk::<BHS_LEN>().unwrap());
    assert_eq!(last.opcode(), Opcode::LogoutRequest, "{last:?}");
}

/// Hands one connection on; returns all that its client said.
fn relay(listener: &TcpListener, target: &str) -> Vec<u8> {
    let (mut client, _) = listener.accept().unwrap();
    let mut target = TcpStream::connect(target).unwrap();
    let (mut from, mut to) = (target.try_clone().unwrap(), client.try_clone().unwrap());
    let back = thread::spawn(move || {
        let copied = std::io::copy(&mut from, &mut to);
        // The client may have gone already.
        let _ = to.shutdown(Shutdown::Write);
        copied
    });
    let (mut heard, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(len @ 1..) = client.read(&mut bytes) {
        heard.extend(&bytes[..len]);
        target.write_all(&bytes[..len]).unwrap();
    }
    let _ = target.shutdown(Shutdown::Write);
    let _ = back.join();
    heard
}

#[test]
fn what_cannot_be_opened_is_named_with_the_way_out() {
    let back = Server::start("remote-refusing", &["ram:1M"], &[]).unwrap();
    let lun = &back.luns[0];
    let portal = &lun.portals[0];
    let target = &lun.target;
    for (address, told) in [
        (format!("iscsi://{portal}/{target}/5"), "no such LUN"),
        (
            format!("iscsi://{portal}/iqn.2026-11.org.lunar.test:none/0"),
            "this portal has no such target",
        ),
        (format!("iscsi://127.0.0.1:1/{target}/0"), "cannot connect"),
        (
            format!("iscsi://somebody@{portal}/{target}/0"),
            "set the environment variable LUNAR_SECRET",
        ),
    ] {
        let serve = ["serve", &address, "--listen", "127.0.0.1:0"];
        says(&refused(&mut lunar(&serve)), &[told, &address]);
    }
}
