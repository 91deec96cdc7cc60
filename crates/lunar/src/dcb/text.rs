//! What was heard at a port, for people: the fields of `lldptool -t` and `dcbtool gc`.

use super::report::{
    AppReport, CeeAppReport, CeeReport, DcbReport, EtsReport, FlagsReport, IeeeReport, LocalReport,
    NeighbourReport, OperationalReport, PfcReport,
};

/// All of it, a section for each end.
pub(super) fn written(report: &DcbReport) -> String {
    let mut page = Page::default();
    let state = if report.link_up { "up" } else { "down" };
    page.0 = format!("{} ({}), link {state}\n", report.interface, report.mac);
    let lossless = match (report.lossless_priority, &report.problem) {
        (Some(priority), _) => format!("yes, at priority {priority}"),
        (None, problem) => format!("no: {}", problem.as_deref().unwrap_or_default()),
    };
    page.field("FCoE is lossless", &lossless);
    for warning in &report.warnings {
        page.field("Warning", warning);
    }
    page.heading("Local");
    match &report.local {
        Some(local) => page.local(local),
        None => page.field("DCB", "this NIC has no DCB"),
    }
    if report.neighbors.is_empty() {
        page.heading(&format!(
            "No neighbor was heard within {} s",
            report.listened_s
        ));
    }
    for neighbour in &report.neighbors {
        page.neighbour(neighbour);
    }
    if let Some(operational) = &report.operational {
        page.operational(operational);
    }
    page.0
}

/// Lines that are written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        self.0 += &format!("\n{text}\n");
    }

    fn field(&mut self, name: &str, value: &str) {
        let line = format!("    {name:<24}{value}");
        self.0 += line.trim_end();
        self.0.push('\n');
    }

    /// One that is told only where there is something to tell.
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(name, value);
        }
    }

    fn local(&mut self, local: &LocalReport) {
        let by = if local.set_by_host {
            "programs on this machine"
        } else {
            "the firmware of the NIC"
        };
        self.field("Set by", by);
        self.pfc(&local.pfc);
        self.ets("ETS", &local.ets);
        self.apps("Application", &local.apps);
        self.field("PFC Frames Sent", &by_priority(&local.pfc_frames_sent));
        self.field(
            "PFC Frames Received",
            &by_priority(&local.pfc_frames_received),
        );
    }

    fn neighbour(&mut self, told: &NeighbourReport) {
        self.heading(&format!("Neighbor {}", told.mac));
        self.field("Chassis ID", &told.chassis_id);
        self.field("Port ID", &told.port_id);
        self.field("Time to Live", &format!("{} s", told.ttl_s));
        self.text("Port Description", &told.port_description);
        self.text("System Name", &told.system_name);
        self.text("System Description", &told.system_description);
        if let Some(ieee) = &told.ieee {
            self.heading(&format!("Neighbor {}, IEEE", told.mac));
            self.ieee(ieee);
        }
        if let Some(cee) = &told.cee {
            self.heading(&format!("Neighbor {}, CEE", told.mac));
            self.cee(cee);
        }
    }

    fn ieee(&mut self, told: &IeeeReport) {
        if let Some(pfc) = &told.pfc {
            self.pfc(pfc);
        }
        if let Some(ets) = &told.ets {
            self.ets("ETS", ets);
        }
        if let Some(ets) = &told.ets_recommendation {
            self.ets("ETS Recommendation", ets);
        }
        let apps = told.apps.as_deref().unwrap_or_default();
        self.apps("Application", apps);
    }

    fn cee(&mut self, told: &CeeReport) {
        let control = format!("SeqNo {}, AckNo {}", told.seq_no, told.ack_no);
        self.field("Control", &control);
        if let Some(pfc) = &told.pfc {
            self.field("PFC", &flags(pfc.flags));
            self.field("PFC Capable Classes", &pfc.classes_max.to_string());
            self.field("PFC Enabled", &numbers(&pfc.priorities));
        }
        if let Some(groups) = &told.priority_groups {
            self.field("Priority Groups", &flags(groups.flags));
            self.field("Priority to Group", &by_priority(&groups.priority_to_group));
            self.field("Group Bandwidth", &percent(&groups.bandwidth_percent));
            self.field("Max Classes", &groups.classes_max.to_string());
        }
        if let Some(apps) = &told.apps {
            self.field("Applications", &flags(apps.flags));
            for app in &apps.entries {
                self.field("Application", &cee_app(app));
            }
        }
    }

    fn operational(&mut self, told: &OperationalReport) {
        self.heading(&format!("Operational ({})", told.dialect));
        self.field("PFC Enabled", &numbers(&told.pfc_priorities));
        let peers = numbers(&told.peer_pfc_priorities);
        self.field("PFC Enabled at Neighbor", &peers);
        self.ets("ETS", &told.ets);
        self.apps("Application", &told.apps);
        self.apps("Application at Neighbor", &told.peer_apps);
        self.text("Incompatible", &told.incompatible.join(", "));
    }

    fn pfc(&mut self, pfc: &PfcReport) {
        if let Some(willing) = pfc.willing {
            self.field("PFC Willing", yes_no(willing));
        }
        self.field("PFC Capable Classes", &pfc.classes_max.to_string());
        self.field("PFC Enabled", &numbers(&pfc.priorities));
    }

    fn ets(&mut self, name: &str, ets: &EtsReport) {
        if let Some(willing) = ets.willing {
            self.field(&format!("{name} Willing"), yes_no(willing));
        }
        if let Some(classes) = ets.classes_max {
            self.field("Max Classes", &classes.to_string());
        }
        self.field(name, "");
        self.field("  Priority to Class", &by_priority(&ets.priority_to_class));
        self.field("  Class Bandwidth", &percent(&ets.bandwidth_percent));
        self.field(
            "  Class Selection",
            &by_priority(&ets.algorithms.map(algorithm)),
        );
    }

    fn apps(&mut self, name: &str, apps: &[AppReport]) {
        for app in apps {
            let protocol = protocol(app.selector, app.protocol);
            let line = format!("{protocol}, priority {}", app.priority);
            self.field(name, &line);
        }
    }
}

const fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn flags(flags: FlagsReport) -> String {
    let words = [
        if flags.enabled { "enabled" } else { "disabled" },
        if flags.willing {
            "willing"
        } else {
            "not willing"
        },
        if flags.error { "error" } else { "no error" },
    ];
    words.join(", ")
}

/// `3 4`, or `none`.
fn numbers(numbers: &[u8]) -> String {
    let words: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    match &*words.join(" ") {
        "" => "none".to_owned(),
        words => words.to_owned(),
    }
}

/// `0:0 1:0 2:0 3:1 …`.
fn by_priority<T: ToString>(values: &[T]) -> String {
    let pairs = values.iter().enumerate();
    let pairs: Vec<_> = pairs
        .map(|(at, value)| format!("{at}:{}", value.to_string()))
        .collect();
    pairs.join(" ")
}

fn percent(values: &[u8]) -> String {
    let values: Vec<_> = values.iter().map(|value| format!("{value}%")).collect();
    values.join(" ")
}

/// Transmission selection algorithms (IEEE 802.1Q Table 8-6).
fn algorithm(number: u8) -> String {
    match number {
        0 => "strict".to_owned(),
        1 => "shaper".to_owned(),
        2 => "ets".to_owned(),
        255 => "vendor".to_owned(),
        other => other.to_string(),
    }
}

fn cee_app(app: &CeeAppReport) -> String {
    let protocol = match app.selector {
        0 => protocol(1, app.protocol),
        _ => protocol(4, app.protocol),
    };
    format!("{protocol}, priority {}", numbers(&app.priorities))
}

/// Selectors of IEEE.
fn protocol(selector: u8, protocol: u16) -> String {
    match (selector, protocol) {
        (1, 0x8906) => "EtherType 8906h (FCoE)".to_owned(),
        (1, 0x8914) => "EtherType 8914h (FIP)".to_owned(),
        (1, ethertype) => format!("EtherType {ethertype:04x}h"),
        (2, port) => format!("TCP port {port}"),
        (3, port) => format!("UDP port {port}"),
        (4, port) => format!("TCP or UDP port {port}"),
        (5, dscp) => format!("DSCP {dscp}"),
        (other, protocol) => format!("selector {other}, protocol {protocol:04x}h"),
    }
}
