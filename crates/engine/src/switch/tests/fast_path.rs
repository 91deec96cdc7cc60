//! Hosts at interfaces of a switch whose kernel forwards by itself: what it may not do any more is
//! over before anything is answered.

use std::fs;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use ::io::ether::{EtherOptions, EtherPort};
use fc::fabric::DropReason;
use fc::wire::names::FcId;

use super::super::options::{FastPathChoice, Place, SwitchOptions, Zoning};
use super::super::run;
use super::carry::Running;
use super::enode::Enode;
use super::interfaces::{in_namespace, interface, options, start};

/// Hosts at `vb` and `vd`, and what the network stack hears at `va` of frames from the first one.
struct Rig {
    one: Enode,
    other: Enode,
    stack: EtherPort,
    switch: Running,
    /// Frames of the first host that arrived.
    sent: u64,
}

impl Rig {
    fn new(options: SwitchOptions) -> Self {
        let switch = start(options);
        let stack = EtherPort::open(&interface("va"), &EtherOptions::default()).unwrap();
        let [mut one, mut other] = ["vb", "vd"].map(|name| Enode::plug(&interface(name), None));
        one.log_in();
        other.log_in();
        Self {
            one,
            other,
            stack,
            switch,
            sent: 0,
        }
    }

    /// Whether a frame from the first to the second host, that arrives, goes by the kernel alone.
    fn is_in_kernel(&mut self, payload: &[u8]) -> bool {
        self.heard_by_stack();
        self.one.send(self.other.fc_id, payload);
        let frame = (self.one.fc_id, payload.to_vec());
        assert_eq!(self.other.next_frame(), frame);
        self.sent += 1;
        self.heard_by_stack() == 0
    }

    /// Sends frames until they go by the kernel.
    fn settle(&mut self) {
        for number in 0..1000_u32 {
            if self.is_in_kernel(&number.to_be_bytes()) {
                return;
            }
        }
        panic!("they go through the switch");
    }

    /// Frames of FCoE.
    fn heard_by_stack(&mut self) -> usize {
        let mut count = 0;
        let is_fcoe = |frame: &[u8]| frame[12..14] == [0x89, 0x06];
        let taken = |frame: &[u8], _| count += usize::from(is_fcoe(frame));
        self.stack.receive(taken);
        count
    }

    /// That the next frame of the first host does not come to the second one, but to the switch.
    #[track_caller]
    fn is_cut(&mut self, to: FcId) {
        self.heard_by_stack();
        self.one.send(to, b"cut!");
        // What is answered later was read later.
        self.one.solicit();
        assert_eq!(self.heard_by_stack(), 1);
        assert!(self.other.frame_within(SHORT).is_none());
    }
}

const SHORT: Duration = Duration::from_millis(50);

/// As [`in_namespace`], for what only root may do.
fn as_root(test: &str, story: impl FnOnce()) {
    if rustix::process::geteuid().is_root() {
        in_namespace(test, story);
    } else {
        not_run(test);
    }
}

/// Past what captures the output of tests that pass, for `./check` to count and to name.
fn not_run(test: &str) {
    let words = format!(
        "\nnot run: {test}: it needs root\ntest result: ok. 0 passed; 0 failed; 1 not run\n"
    );
    let _ = std::io::stderr().write_all(words.as_bytes());
}

#[test]
fn a_pair_goes_by_the_kernel_once_it_was_let_through() {
    let test = concat!(
        module_path!(),
        "::a_pair_goes_by_the_kernel_once_it_was_let_through"
    );
    as_root(test, || {
        let mut rig = Rig::new(options());
        assert!(!rig.is_in_kernel(b"first"));
        rig.settle();
        assert!(rig.is_in_kernel(&[7; 2112]));
        let survey = rig.switch.orders().survey().unwrap();
        assert_eq!(survey.ports[0].frames, rig.sent, "both ways");
        rig.switch.stop();
    });
}

/// The program of the fast path is in the way of another one.
#[test]
fn a_port_by_xdp_is_told_who_forwards_there() {
    let test = concat!(module_path!(), "::a_port_by_xdp_is_told_who_forwards_there");
    as_root(test, || {
        let switch = start(options());
        let beside = SwitchOptions::new(vec![Place::Xdp("va".to_owned())]);
        let taken = run(&beside, |_, _| Ok(())).unwrap_err().to_string();
        let way_out = format!("stop it (kill {})", std::process::id());
        assert!(taken.contains(&way_out), "{taken}");
        switch.stop();
    });
}

#[test]
fn without_it_all_frames_go_through_the_switch() {
    let test = concat!(
        module_path!(),
        "::without_it_all_frames_go_through_the_switch"
    );
    as_root(test, || {
        let mut options = options();
        options.fast_path = FastPathChoice::Off;
        let mut rig = Rig::new(options);
        for number in 0..10_u32 {
            assert!(!rig.is_in_kernel(&number.to_be_bytes()));
        }
        rig.switch.stop();
    });
}

#[test]
fn a_logout_is_answered_when_the_kernel_sends_no_more() {
    let test = concat!(
        module_path!(),
        "::a_logout_is_answered_when_the_kernel_sends_no_more"
    );
    as_root(test, || {
        let mut rig = Rig::new(options());
        rig.settle();
        let gone = rig.other.fc_id;
        rig.other.log_out();
        rig.is_cut(gone);
        rig.switch.stop();
    });
}

/// Who has registered for changes hears of other zones when they hold.
#[test]
fn zones_are_told_when_the_kernel_sends_no_more() {
    let test = concat!(
        module_path!(),
        "::zones_are_told_when_the_kernel_sends_no_more"
    );
    as_root(test, || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zones");
        fs::write(&file, "default permit\n").unwrap();
        let mut options = options();
        options.zoning = Zoning::File(file.clone());
        let mut rig = Rig::new(options);
        rig.settle();
        // By then all have been told of the logins.
        thread::sleep(Duration::from_millis(2500));
        rig.one.register_for_changes();
        let answer = rig.one.next_frame();
        assert_eq!(answer.0, FcId::FABRIC_CONTROLLER);
        assert!(rig.is_in_kernel(b"last"));
        fs::write(&file, "default deny\n").unwrap();
        rig.switch.orders().read_zones();
        let told = rig.one.next_frame();
        assert_eq!(told.0, FcId::FABRIC_CONTROLLER);
        let to = rig.other.fc_id;
        rig.is_cut(to);
        let survey = rig.switch.orders().survey().unwrap();
        assert_eq!(survey.ports[0].dropped, [(DropReason::Zoned, 1)]);
        rig.switch.stop();
    });
}

#[test]
fn a_link_that_was_down_begins_anew() {
    let test = concat!(module_path!(), "::a_link_that_was_down_begins_anew");
    as_root(test, || {
        let mut rig = Rig::new(options());
        rig.settle();
        super::interfaces::ip("link set vc down");
        super::interfaces::ip("link set vc up");
        rig.other.log_in();
        rig.settle();
        rig.switch.stop();
    });
}
