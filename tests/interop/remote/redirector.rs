//! A portal at which no target is, but which knows where it is (RFC 7143 §11.13.5, 0101).

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use iscsi::wire::bhs::{BHS_LEN, Bhs, Stamps};
use iscsi::wire::login::{LoginRequest, LoginResponse};
use iscsi::wire::serial::StatSn;

/// Answers every login with the portal that it was told last.
pub(super) struct Redirector {
    pub(super) portal: String,
    to: Arc<Mutex<String>>,
}

impl Redirector {
    pub(super) fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = listener.local_addr().unwrap().to_string();
        let to = Arc::new(Mutex::new(to.to_owned()));
        let told = Arc::clone(&to);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let to = told.lock().unwrap().clone();
                // Who asks may have gone.
                let _ = redirect(socket, &to);
            }
        });
        Self { portal, to }
    }

    pub(super) fn move_to(&self, to: &str) {
        to.clone_into(&mut self.to.lock().unwrap());
    }
}

fn redirect(mut socket: TcpStream, to: &str) -> io::Result<()> {
    let mut bhs = Bhs([0; BHS_LEN]);
    socket.read_exact(&mut bhs.0)?;
    let request = LoginRequest::decode(&bhs);
    let mut text = vec![0; bhs.data_len().next_multiple_of(4) as usize];
    socket.read_exact(&mut text)?;
    let response = LoginResponse {
        transit: false,
        more: false,
        current: request.current,
        next: 0,
        version_max: 0,
        version_active: 0,
        isid: request.isid,
        tsih: 0,
        itt: request.itt,
        stamps: Stamps {
            stat_sn: StatSn(0),
            exp_cmd_sn: request.cmd_sn,
            max_cmd_sn: request.cmd_sn,
        },
        status: 0x0101,
    };
    let mut text = format!("TargetAddress={to}\0").into_bytes();
    let mut bhs = response.encode();
    bhs.set_data_len(text.len() as u32);
    text.resize(text.len().next_multiple_of(4), 0);
    socket.write_all(&[&bhs.0[..], &text].concat())
}
