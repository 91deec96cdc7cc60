//! The kinds of bad peers. Each connects, does something bad, and gives its socket back, to be held
//! for a while.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use iscsi::wire::bhs::Itt;
use scsi::wire::lun::Lun;
use tests::cdb;
use tests::initiator::{Data, Initiator, Reply, Settings};

use self::Kind::{Does, Inside, Sends};

/// What a peer does.
pub(super) enum Kind {
    /// It sends this without having logged in; the argument is its number.
    Sends(fn(u32) -> Vec<u8>),
    /// It logs in properly, then sends this.
    Inside(fn(&mut Initiator, u32) -> Vec<u8>),
    /// Anything else, with the portal, the target's name and its number.
    Does(fn(SocketAddr, &str, u32) -> Result<TcpStream>),
}

pub(super) const KINDS: &[(&str, Kind)] = &[
    ("says nothing", Does(|portal, _, _| connect(portal))),
    ("goes at once", Does(goes_at_once)),
    ("sends noise", Sends(|number| noise(number, 4096))),
    ("sends one byte", Sends(|_| vec![0x43])),
    ("sends half a header", Sends(|_| login(0, b"")[..24].into())),
    ("speaks HTTP", Sends(|_| HTTP.into())),
    ("speaks TLS", Sends(|_| TLS.into())),
    ("commands before login", Sends(|_| pdu(0x01, 0xc0, 0, b""))),
    ("pings before login", Sends(|_| pdu(0x40, 0x80, 0, b""))),
    ("logs out before login", Sends(|_| pdu(0x46, 0x80, 0, b""))),
    (
        "asks for text before login",
        Sends(|_| pdu(0x04, 0x80, 0, ALL)),
    ),
    ("sends a response", Sends(|_| pdu(0x23, 0x87, 0, b""))),
    ("promises 16 MiB of login text", Sends(promises_much)),
    ("adds 255 words of header", Sends(|_| with_ahs(0xff))),
    ("logs in without keys", Sends(|_| login(0x87, b""))),
    ("logs in with no pairs", Sends(|_| login(0x87, NO_PAIRS))),
    ("logs in without an end", Sends(|_| login(0x87, NAME))),
    ("logs in with a long key", Sends(long_key)),
    ("logs in with a thousand keys", Sends(thousand_keys)),
    ("never ends its text", Does(never_ends)),
    ("wants another version", Sends(|_| versioned(0xff, 0x7f))),
    ("begins in no stage", Sends(|_| login(0x8b, &name(1)))),
    ("goes to no stage", Sends(|_| login(0x86, &name(1)))),
    ("goes backwards", Sends(|_| login(0x84, &name(1)))),
    ("wants no such target", Sends(no_such_target)),
    ("joins no session", Sends(joins_no_session)),
    ("closes its half", Does(closes_its_half)),
    ("dribbles its login", Does(dribbles)),
    (
        "sends an unknown opcode",
        Inside(|_, _| pdu(0x1f, 0x80, 0, b"")),
    ),
    ("logs in twice", Inside(|_, _| login(0x87, &name(1)))),
    ("sends data nobody asked for", Inside(|_, _| unasked())),
    (
        "sends too long a segment",
        Inside(|_, _| length(0x01, 0xff_ffff)),
    ),
    ("sends SNACK", Inside(|_, _| pdu(0x10, 0x80, 0, b""))),
    (
        "sends no text",
        Inside(|_, n| pdu(0x04, 0x80, 3, &noise(n, 300))),
    ),
    ("sends noise inside", Inside(|_, n| noise(n, 4096))),
    ("manages by no function", Inside(manages)),
    ("runs out of the window", Inside(|_, _| outside_window())),
    ("uses one tag twice", Inside(|_, _| same_tag_twice())),
    ("floods with pings", Inside(floods)),
    ("does not read its reads", Inside(does_not_read)),
    ("never sends its writes", Inside(|_, _| never_writes())),
    ("breaks a header digest", Does(breaks_digest)),
    ("is cut off", Does(is_cut_off)),
];

const HTTP: &[u8] = b"GET / HTTP/1.1\r\nHost: san\r\n\r\n";
const TLS: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
const ALL: &[u8] = b"SendTargets=All\0";
const NO_PAIRS: &[u8] = b"Initiator\0\0=\0x";
const NAME: &[u8] = b"InitiatorName=iqn";

impl Kind {
    /// Does it, and gives the socket back.
    pub(super) fn meet(&self, portal: SocketAddr, target: &str, number: u32) -> Result<TcpStream> {
        match self {
            Sends(bytes) => sends(portal, &bytes(number)),
            Inside(bad) => inside(portal, target, number, bad),
            Does(act) => act(portal, target, number),
        }
    }
}

fn connect(portal: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&portal, Duration::from_secs(5))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_millis(10)))?;
    socket.set_write_timeout(Some(Duration::from_millis(500)))?;
    Ok(socket)
}

/// Sends, and takes what comes at once.
fn sends(portal: SocketAddr, bytes: &[u8]) -> Result<TcpStream> {
    let mut socket = connect(portal)?;
    socket.write_all(bytes)?;
    let _ = socket.read(&mut [0; 4096]);
    Ok(socket)
}

/// A PDU of 48 bytes and its data: opcode with its I bit, flags, ITT.
fn pdu(opcode: u8, flags: u8, itt: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    bytes[0] = opcode;
    bytes[1] = flags;
    bytes[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
    bytes[16..20].copy_from_slice(&itt.to_be_bytes());
    bytes[24..28].copy_from_slice(&1_u32.to_be_bytes());
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn login(flags: u8, text: &[u8]) -> Vec<u8> {
    pdu(0x43, flags, 1, text)
}

fn length(opcode: u8, length: u32) -> Vec<u8> {
    let mut bytes = pdu(opcode, 0x80, 1, b"");
    bytes[5..8].copy_from_slice(&length.to_be_bytes()[1..]);
    bytes
}

fn with_ahs(words: u8) -> Vec<u8> {
    let mut bytes = login(0x87, b"");
    bytes[4] = words;
    bytes.resize(48 + usize::from(words) * 4, 0xee);
    bytes
}

fn versioned(max: u8, min: u8) -> Vec<u8> {
    let mut bytes = login(0x87, &name(1));
    bytes[2..4].copy_from_slice(&[max, min]);
    bytes
}

fn name(number: u32) -> Vec<u8> {
    format!("InitiatorName=iqn.2026-11.org.lunar.test:bad-{number}\0SessionType=Discovery\0").into()
}

fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn goes_at_once(portal: SocketAddr, _: &str, _: u32) -> Result<TcpStream> {
    drop(connect(portal)?);
    connect(portal)
}

fn promises_much(_: u32) -> Vec<u8> {
    let mut bytes = length(0x43, 0xff_ffff);
    bytes.resize(64 << 10, b'a');
    bytes
}

fn long_key(number: u32) -> Vec<u8> {
    let mut text = name(number);
    text.extend(std::iter::repeat_n(b'X', 7000));
    text.extend(b"=1\0");
    login(0x87, &text)
}

fn thousand_keys(number: u32) -> Vec<u8> {
    let mut text = name(number);
    (0..1000).for_each(|key| text.extend(format!("K{key}=\0").bytes()));
    login(0x87, &text)
}

/// C bit set, again and again, until nobody takes it any more.
fn never_ends(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let mut socket = connect(portal)?;
    let mut text = name(number);
    text.resize(4000, b'y');
    socket.write_all(&login(0x44, &text))?;
    for _ in 1..64 {
        let _ = socket.read(&mut [0; 4096]);
        if socket.write_all(&login(0x44, &text)).is_err() {
            break;
        }
    }
    Ok(socket)
}

fn no_such_target(number: u32) -> Vec<u8> {
    let text = format!(
        "InitiatorName=iqn.2026-11.org.lunar.test:bad-{number}\0SessionType=Normal\0\
         TargetName=iqn.2026-11.org.lunar.test:%s%s%n\0"
    );
    login(0x87, text.as_bytes())
}

/// A TSIH that nobody has.
fn joins_no_session(number: u32) -> Vec<u8> {
    let mut bytes = login(0x87, &name(number));
    bytes[14..16].copy_from_slice(&0xdead_u16.to_be_bytes());
    bytes
}

fn closes_its_half(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let socket = sends(portal, &login(0x87, &name(number)))?;
    socket.shutdown(Shutdown::Write)?;
    Ok(socket)
}

/// A byte at a time, and then no more.
fn dribbles(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let mut socket = connect(portal)?;
    for byte in &login(0x87, &name(number))[..60] {
        socket.write_all(&[*byte])?;
    }
    Ok(socket)
}

/// Logs in properly, then sends what `bad` makes.
fn inside(
    portal: SocketAddr,
    target: &str,
    number: u32,
    bad: &fn(&mut Initiator, u32) -> Vec<u8>,
) -> Result<TcpStream> {
    let (mut socket, mut initiator) = logged_in(portal, Settings::new(number, target))?;
    let bytes = bad(&mut initiator, number);
    socket.write_all(initiator.output())?;
    socket.write_all(&bytes)?;
    // Those that do not read must not read.
    if bytes.is_empty() {
        return Ok(socket);
    }
    let _ = socket.read(&mut [0; 4096]);
    Ok(socket)
}

fn logged_in(portal: SocketAddr, settings: Settings) -> Result<(TcpStream, Initiator)> {
    let mut socket = connect(portal)?;
    let mut initiator = Initiator::new(settings);
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        socket.write_all(&std::mem::take(initiator.output()))?;
        let mut buffer = [0; 8192];
        if let Ok(count) = socket.read(&mut buffer) {
            if count == 0 {
                break;
            }
            initiator
                .receive(&buffer[..count])
                .map_err(std::io::Error::other)?;
        }
        if initiator.poll() == Some(Reply::LoggedIn) {
            return Ok((socket, initiator));
        }
    }
    Err(std::io::ErrorKind::ConnectionRefused.into())
}

fn manages(initiator: &mut Initiator, _: u32) -> Vec<u8> {
    initiator.manage(0x7f, Lun::from_index(0), Itt(99));
    pdu(0x42, 0x80, 77, b"")
}

fn unasked() -> Vec<u8> {
    pdu(0x05, 0x80, 0x0bad_cafe, &[7; 512])
}

fn outside_window() -> Vec<u8> {
    let mut bytes = pdu(0x01, 0x80, 5, b"");
    bytes[24..28].copy_from_slice(&0x7000_0000_u32.to_be_bytes());
    bytes.repeat(200)
}

/// A write that announces a MiB.
fn write(itt: u32, cmd_sn: u32) -> Vec<u8> {
    let mut bytes = pdu(0x01, 0xa0, itt, b"");
    bytes[20..24].copy_from_slice(&(1_u32 << 20).to_be_bytes());
    bytes[24..28].copy_from_slice(&cmd_sn.to_be_bytes());
    bytes[32..42].copy_from_slice(&[0x2a, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
    bytes
}

/// A write that waits for its data, then the same tag again.
fn same_tag_twice() -> Vec<u8> {
    write(5, 1).repeat(2)
}

fn floods(initiator: &mut Initiator, _: u32) -> Vec<u8> {
    for _ in 0..500 {
        initiator.ping(&[1; 200]);
    }
    pdu(0x40, 0x80, 9999, b"")
}

/// 32 reads of 8 MiB; nothing of them is read.
fn does_not_read(initiator: &mut Initiator, _: u32) -> Vec<u8> {
    for number in 0..32 {
        let cdb = [0x28, 0, 0, 0, 0, 0, 0, 0x40, 0, 0];
        initiator.command(number, Lun::from_index(0), &cdb, Data::In(8 << 20));
    }
    Vec::new()
}

/// 32 writes that announce a MiB each, and nothing of it.
fn never_writes() -> Vec<u8> {
    let write = |number: u32| write(100 + number, 1 + number);
    (0..32).flat_map(write).collect()
}

fn breaks_digest(portal: SocketAddr, target: &str, number: u32) -> Result<TcpStream> {
    let mut settings = Settings::new(number, target);
    settings.keys = vec![("HeaderDigest", "CRC32C".to_owned())];
    let (mut socket, mut initiator) = logged_in(portal, settings)?;
    initiator.ping(b"");
    if let Some(last) = initiator.output().last_mut() {
        *last ^= 1;
    }
    socket.write_all(initiator.output())?;
    let _ = socket.read(&mut [0; 4096]);
    Ok(socket)
}

/// In the middle of its reads and writes.
fn is_cut_off(portal: SocketAddr, target: &str, number: u32) -> Result<TcpStream> {
    let (mut socket, mut initiator) = logged_in(portal, Settings::new(number, target))?;
    let data: Rc<[u8]> = vec![3; 1 << 20].into();
    for slot in 0..8 {
        // Beyond what the good session uses.
        let cdb = cdb::write(0x1_0000 + slot * 0x800, 0x800, false);
        let (lun, data) = (Lun::from_index(0), Data::Out(data.clone()));
        initiator.command(slot, lun, &cdb, data);
    }
    let output = initiator.output();
    let half = output.len() / 2;
    socket.write_all(&output[..half])?;
    drop(socket);
    connect(portal)
}
