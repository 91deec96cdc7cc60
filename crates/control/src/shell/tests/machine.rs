//! The machine of the seeds.

use std::cell::Cell;
use std::net::IpAddr;

use crate::shell::{Machine, SessionFact, VolumeFact};

/// The machine of the seeds: its MAC and IPv6 addresses are those of seed 000, its name and serial
/// numbers those of seed 001.
#[derive(Debug, Default)]
pub(super) struct Sample {
    serials: Cell<u64>,
}

impl Machine for Sample {
    fn volume(&self, name: &str) -> Option<VolumeFact> {
        let is_present = name != "gone";
        let size = Some(1 << 30);
        Some(VolumeFact { size, is_present })
    }

    fn sessions(&self) -> Vec<SessionFact> {
        vec![SessionFact {
            id: 1,
            initiator: "iqn.1993-08.org.debian:01:a41f7afa2fc8".to_owned(),
            alias: "client".to_owned(),
            target: "iqn.2026-11.org.example:san".to_owned(),
            address: "10.10.1.1:41000".to_owned(),
            is_authenticated: false,
        }]
    }

    fn interfaces(&self) -> Vec<(String, [u8; 6])> {
        vec![
            ("eth0".to_owned(), [0, 0, 0x5e, 0, 0x53, 1]),
            ("int0".to_owned(), [0xac, 0xde, 0x48, 0x23, 0x45, 0x67]),
        ]
    }

    fn addresses(&self) -> Option<Vec<IpAddr>> {
        let all = ["10.10.1.3", "2001:db8::aede:48ff:fe23:4567"];
        Some(all.map(|address| address.parse().unwrap()).into())
    }

    fn iqn_base(&self) -> String {
        "iqn.2003-01.org.linux-iscsi.node-1.aarch64".to_owned()
    }

    fn serial(&self) -> String {
        let number = self.serials.get();
        self.serials.set(number + 1);
        format!("{:012x}", 0x385e_783e_5040 + number)
    }

    fn initiator_name(&self, path: &str) -> Result<String, String> {
        match path {
            "/etc/iscsi/initiatorname.iscsi" => {
                Ok("iqn.1993-08.org.debian:01:a41f7afa2fc8".to_owned())
            }
            _ => Err("there is no such file".to_owned()),
        }
    }
}
