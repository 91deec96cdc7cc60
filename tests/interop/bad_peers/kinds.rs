//! The kinds of bad peers. Each connects, does something bad, and gives its socket back, to be held
//! for a while.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use iscsi::wire::bhs::Itt;
use scsi::wire::lun::Lun;
use tests::initiator::{Data, Initiator, Reply, Settings};

/// Portal, target name, number of the peer.
type Kind = fn(SocketAddr, &str, u32) -> Result<TcpStream>;

pub(super) const KINDS: &[(&str, Kind)] = &[
    ("says nothing", |portal, _, _| connect(portal)),
    ("goes at once", goes_at_once),
    ("sends noise", |portal, _, number| {
        sends(portal, &noise(number, 4096))
    }),
    ("sends one byte", |portal, _, _| sends(portal, &[0x43])),
    ("sends half a header", |portal, _, _| {
        sends(portal, &login(0, b"")[..24])
    }),
    ("speaks HTTP", |portal, _, _| {
        sends(portal, b"GET / HTTP/1.1\r\nHost: san\r\n\r\n")
    }),
    ("speaks TLS", |portal, _, _| {
        sends(portal, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])
    }),
    ("commands before login", |portal, _, _| {
        sends(portal, &pdu(0x01, 0xc0, 0, b""))
    }),
    ("pings before login", |portal, _, _| {
        sends(portal, &pdu(0x40, 0x80, 0, b""))
    }),
    ("logs out before login", |portal, _, _| {
        sends(portal, &pdu(0x46, 0x80, 0, b""))
    }),
    ("asks for text before login", |portal, _, _| {
        sends(portal, &pdu(0x04, 0x80, 0, b"SendTargets=All\0"))
    }),
    ("sends a response", |portal, _, _| {
        sends(portal, &pdu(0x23, 0x87, 0, b""))
    }),
    ("promises 16 MiB of login text", promises_much),
    ("adds 255 words of header", |portal, _, _| {
        sends(portal, &with_ahs(0xff))
    }),
    ("logs in without keys", |portal, _, _| {
        sends(portal, &login(0x87, b""))
    }),
    ("logs in with no pairs", |portal, _, _| {
        sends(portal, &login(0x87, b"Initiator\0\0=\0x"))
    }),
    ("logs in without an end", |portal, _, _| {
        sends(portal, &login(0x87, b"InitiatorName=iqn"))
    }),
    ("logs in with a long key", long_key),
    ("logs in with a thousand keys", thousand_keys),
    ("never ends its text", never_ends),
    ("wants another version", |portal, _, _| {
        sends(portal, &versioned(0xff, 0x7f))
    }),
    ("begins in no stage", |portal, _, _| {
        sends(portal, &login(0x8b, &name(1)))
    }),
    ("goes to no stage", |portal, _, _| {
        sends(portal, &login(0x86, &name(1)))
    }),
    ("goes backwards", |portal, _, _| {
        sends(portal, &login(0x84, &name(1)))
    }),
    ("wants no such target", no_such_target),
    ("joins no session", joins_no_session),
    ("closes its half", closes_its_half),
    ("dribbles its login", dribbles),
    ("sends an unknown opcode", |p, t, n| {
        inside(p, t, n, |_| pdu(0x1f, 0x80, 0, b""))
    }),
    ("logs in twice", |p, t, n| {
        inside(p, t, n, |_| login(0x87, &name(1)))
    }),
    ("sends data nobody asked for", |p, t, n| {
        inside(p, t, n, |_| pdu(0x05, 0x80, 0x0bad_cafe, &[7; 512]))
    }),
    ("sends too long a segment", |p, t, n| {
        inside(p, t, n, |_| length(0x01, 0xff_ffff))
    }),
    ("sends SNACK", |p, t, n| {
        inside(p, t, n, |_| pdu(0x10, 0x80, 0, b""))
    }),
    ("sends no text", |p, t, n| {
        inside(p, t, n, |_| pdu(0x04, 0x80, 3, &noise(n, 300)))
    }),
    ("sends noise inside", |p, t, n| {
        inside(p, t, n, |_| noise(n, 4096))
    }),
    ("manages by no function", |p, t, n| inside(p, t, n, manages)),
    ("runs out of the window", |p, t, n| {
        inside(p, t, n, |_| outside_window())
    }),
    ("uses one tag twice", |p, t, n| {
        inside(p, t, n, |_| same_tag_twice())
    }),
    ("floods with pings", |p, t, n| inside(p, t, n, floods)),
    ("does not read its reads", |p, t, n| {
        inside(p, t, n, does_not_read)
    }),
    ("never sends its writes", |p, t, n| {
        inside(p, t, n, |_| never_writes())
    }),
    ("breaks a header digest", breaks_digest),
    ("is cut off", is_cut_off),
];

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

fn promises_much(portal: SocketAddr, _: &str, _: u32) -> Result<TcpStream> {
    let mut bytes = length(0x43, 0xff_ffff);
    bytes.resize(64 << 10, b'a');
    sends(portal, &bytes)
}

fn long_key(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let mut text = name(number);
    text.extend(std::iter::repeat_n(b'X', 7000));
    text.extend(b"=1\0");
    sends(portal, &login(0x87, &text))
}

fn thousand_keys(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let mut text = name(number);
    (0..1000).for_each(|key| text.extend(format!("K{key}=\0").bytes()));
    sends(portal, &login(0x87, &text))
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

fn no_such_target(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let text = format!(
        "InitiatorName=iqn.2026-11.org.lunar.test:bad-{number}\0SessionType=Normal\0\
         TargetName=iqn.2026-11.org.lunar.test:%s%s%n\0"
    );
    sends(portal, &login(0x87, text.as_bytes()))
}

/// A TSIH that nobody has.
fn joins_no_session(portal: SocketAddr, _: &str, number: u32) -> Result<TcpStream> {
    let mut bytes = login(0x87, &name(number));
    bytes[14..16].copy_from_slice(&0xdead_u16.to_be_bytes());
    sends(portal, &bytes)
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
    bad: impl Fn(&mut Initiator) -> Vec<u8>,
) -> Result<TcpStream> {
    let (mut socket, mut initiator) = logged_in(portal, Settings::new(number, target))?;
    let bytes = bad(&mut initiator);
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

fn manages(initiator: &mut Initiator) -> Vec<u8> {
    initiator.manage(0x7f, Lun::from_index(0), Itt(99));
    pdu(0x42, 0x80, 77, b"")
}

fn outside_window() -> Vec<u8> {
    let mut bytes = pdu(0x01, 0x80, 5, b"");
    bytes[24..28].copy_from_slice(&0x7000_0000_u32.to_be_bytes());
    bytes.repeat(200)
}

fn same_tag_twice() -> Vec<u8> {
    // A write that waits for its data, then the same tag again.
    let mut bytes = pdu(0x01, 0xa0, 5, b"");
    bytes[20..24].copy_from_slice(&(1_u32 << 20).to_be_bytes());
    bytes[32..42].copy_from_slice(&[0x2a, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
    bytes.repeat(2)
}

fn floods(initiator: &mut Initiator) -> Vec<u8> {
    for _ in 0..500 {
        initiator.ping(&[1; 200]);
    }
    pdu(0x40, 0x80, 9999, b"")
}

/// 32 reads of 8 MiB; nothing of them is read.
fn does_not_read(initiator: &mut Initiator) -> Vec<u8> {
    for number in 0..32 {
        let cdb = [0x28, 0, 0, 0, 0, 0, 0, 0x40, 0, 0];
        initiator.command(number, Lun::from_index(0), &cdb, Data::In(8 << 20));
    }
    Vec::new()
}

/// 32 writes that announce a MiB each, and nothing of it.
fn never_writes() -> Vec<u8> {
    let mut all = Vec::new();
    for number in 0..32_u32 {
        let mut bytes = pdu(0x01, 0xa0, 100 + number, b"");
        bytes[20..24].copy_from_slice(&(1_u32 << 20).to_be_bytes());
        bytes[24..28].copy_from_slice(&(1 + number).to_be_bytes());
        bytes[32..42].copy_from_slice(&[0x2a, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
        all.extend(bytes);
    }
    all
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
        let lba = 0x1_0000_u32 + slot * 0x800;
        let mut cdb = [0x2a, 0, 0, 0, 0, 0, 0, 8, 0, 0];
        cdb[2..6].copy_from_slice(&lba.to_be_bytes());
        initiator.command(
            u64::from(slot),
            Lun::from_index(0),
            &cdb,
            Data::Out(data.clone()),
        );
    }
    let output = initiator.output();
    let half = output.len() / 2;
    socket.write_all(&output[..half])?;
    drop(socket);
    connect(portal)
}
