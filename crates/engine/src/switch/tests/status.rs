//! What a switch tells other programs: as much as a socket has room for.

use runtime::n_port::{ANSWER_BYTES, answer_len};

use super::super::status::{LoginStatus, SwitchStatus};

/// A login with a symbolic name of 255 such bytes, as it is written, and with 8 zones.
fn login(byte: u8, zone: &str) -> LoginStatus {
    LoginStatus {
        fc_id: "0x010100".to_owned(),
        port_name: "20:00:52:54:00:12:34:56".to_owned(),
        symbolic_name: [byte; 255].escape_ascii().to_string(),
        zones: vec![zone.to_owned(); 8],
        ..LoginStatus::default()
    }
}

/// A switch of 300 such logins and 256 zones of the longest names.
fn told(login: &LoginStatus) -> SwitchStatus {
    let mut status = SwitchStatus {
        logins_total: 300,
        zones: vec!["z".repeat(64); 256],
        ..SwitchStatus::default()
    };
    status.list(std::iter::repeat_n(login.clone(), 300));
    status
}

#[test]
fn names_that_take_much_room_leave_room_for_fewer_logins() {
    // A control byte is four characters, and six in JSON.
    let login = login(1, &"z".repeat(64));
    let status = told(&login);
    let len = answer_len(&status);
    assert!(len <= ANSWER_BYTES, "{len} bytes");
    let left = ANSWER_BYTES - len;
    assert!(left < answer_len(&login) + 1, "{left} bytes are left");
    assert!(status.logins.len() < 100 && status.logins_total == 300);
}

#[test]
fn of_logins_with_names_as_usual_256_are_listed() {
    let login = LoginStatus {
        symbolic_name: "an initiator of host 7".to_owned(),
        ..login(b'x', "san")
    };
    assert_eq!(told(&login).logins.len(), 256);
}
