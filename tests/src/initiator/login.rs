//! Logging in: one request from operational negotiation to full feature phase.

use iscsi::wire::bhs::Itt;
use iscsi::wire::login::{LoginRequest, LoginResponse, stage};

use super::{Initiator, Reply};

/// MaxRecvDataSegmentLength that is declared.
pub(super) const DATA_SEGMENT: u32 = 262_144;

const USUAL: [(&str, &str); 9] = [
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxRecvDataSegmentLength", "262144"),
    ("MaxBurstLength", "1048576"),
    ("FirstBurstLength", "262144"),
    ("MaxOutstandingR2T", "8"),
    ("ErrorRecoveryLevel", "0"),
];

impl Initiator {
    pub(super) fn send_login(&mut self) {
        let request = LoginRequest {
            transit: true,
            more: false,
            current: stage::OPERATIONAL,
            next: stage::FULL_FEATURE,
            version_max: 0,
            version_min: 0,
            isid: self.settings.isid,
            tsih: 0,
            itt: Itt(0),
            cid: 0,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        let text = self.login_text();
        self.push(request.encode(), text.as_bytes());
    }

    fn login_text(&self) -> String {
        let settings = &self.settings;
        let mut text = format!("InitiatorName={}\0", settings.name);
        match &settings.target {
            Some(target) if settings.keys.iter().any(|(key, _)| *key == "SessionType") => {
                text += &format!("TargetName={target}\0");
            }
            Some(target) => text += &format!("SessionType=Normal\0TargetName={target}\0"),
            None => text += "SessionType=Discovery\0",
        }
        let usual = USUAL
            .iter()
            .filter(|(key, _)| settings.keys.iter().all(|(k, _)| k != key));
        for (key, value) in usual {
            text += &format!("{key}={value}\0");
        }
        for (key, value) in &settings.keys {
            text += &format!("{key}={value}\0");
        }
        text
    }

    pub(super) fn login_response(&mut self, response: &LoginResponse, text: &[u8]) {
        if response.status != 0 {
            self.replies.push_back(Reply::LoginFailed(response.status));
            return;
        }
        for pair in text.split(|byte| *byte == 0) {
            let pair = String::from_utf8_lossy(pair);
            if let Some((key, value)) = pair.split_once('=') {
                self.agree(key, value);
            }
        }
        if response.transit && response.next == stage::FULL_FEATURE {
            self.full_feature = true;
            self.tsih = response.tsih;
            self.framer
                .set_digests(self.limits.header_digest, self.limits.data_digest);
            self.replies.push_back(Reply::LoggedIn);
        }
    }

    fn agree(&mut self, key: &str, value: &str) {
        let number = || value.parse().unwrap_or(0);
        let limits = &mut self.limits;
        match key {
            "HeaderDigest" => limits.header_digest = value == "CRC32C",
            "DataDigest" => limits.data_digest = value == "CRC32C",
            "InitialR2T" => limits.initial_r2t = value == "Yes",
            "ImmediateData" => limits.immediate_data = value == "Yes",
            "FirstBurstLength" => limits.first_burst = number(),
            "MaxBurstLength" => limits.max_burst = number(),
            "MaxRecvDataSegmentLength" => limits.target_data_segment = number(),
            _ => {}
        }
    }
}
