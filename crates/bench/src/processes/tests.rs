//! What the kernel tells of processes and sockets.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::{connection, cpu_time_of, end, peers, sockets};

#[test]
fn the_times_of_processes_add_up_while_all_are_there() {
    let own = std::process::id();
    let one = cpu_time_of(&[own]).unwrap();
    let two = cpu_time_of(&[own, own]).unwrap();
    assert!(!one.is_zero() && two >= 2 * one);
    assert_eq!(cpu_time_of(&[own, u32::MAX]), None);
    assert_eq!(cpu_time_of(&[]), None);
}

#[test]
fn a_row_tells_both_ends() {
    let row = "   1: 0100007F:0CBC 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000 \
               1000        0 123456 1 0000000000000000 20 4 30 10 -1";
    let connection = connection(row).unwrap();
    assert_eq!(connection.local, "127.0.0.1:3260".parse().unwrap());
    assert_eq!(connection.remote, "127.0.0.1:54000".parse().unwrap());
    assert_eq!(connection.inode, 123_456);
}

#[test]
fn an_address_of_ipv4_is_the_same_in_a_socket_of_ipv6() {
    let mapped = end("0000000000000000FFFF00000100007F:0CBC");
    assert_eq!(mapped, "127.0.0.1:3260".parse().ok());
    assert_eq!(mapped, end("0100007F:0CBC"));
    let own = end("00000000000000000000000001000000:0001");
    assert_eq!(own, "[::1]:1".parse().ok());
}

/// A shell that connects to us and says so.
#[test]
fn the_other_end_of_a_socket_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo up; read -u 3");
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", &connect]).stdout(Stdio::piped());
    let mut child = bash.spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let before = sockets();
    let _held = listener.accept().unwrap();
    let after = sockets();
    assert!(peers(&after).contains(&child.id()));
    let later = &after - &before;
    assert!(peers(&later).contains(&child.id()), "{later:?}");
    assert!(peers(&before).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}
