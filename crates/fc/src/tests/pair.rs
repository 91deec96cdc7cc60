//! An initiator and a target with a disk, logged in, and an Ethernet between them that does as
//! planned.

use std::time::Duration;

use scsi::medium::{HeapLease, Now};
use scsi::task::{Completed, SenseBytes, Tag};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use super::disk::Disk;
use super::{Bytes, Ethernet, HeapFrames, bytes, cdb10, command, good, trace};
use crate::frames;
use crate::initiator::{
    Data, Done, FcpFailed, FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent, FcpTmf,
};
use crate::port::Fc4Layer;
use crate::remote::{Fcp, FcpPeer, PeerAddress, RemoteId};
use crate::target::{FcpLimits, FcpTarget};
pub(crate) use crate::tests::Fate;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// Both ends and the Ethernet, which takes no time that they know of.
pub(crate) struct Pair {
    pub(crate) now: Now,
    pub(crate) initiator: FcpInitiator<HeapLease>,
    pub(crate) target: FcpTarget<HeapLease>,
    pub(crate) disk: Disk,
    pub(crate) told: Vec<FcpInitiatorEvent<HeapLease>>,
    /// Every frame that left, as `trace::line` words it.
    pub(crate) trace: Vec<String>,
    ethernet: Ethernet,
    /// The time on the Ethernet.
    ticks: Now,
}

/// Either end to the other.
pub(crate) const REMOTE: RemoteId = RemoteId(3);

pub(crate) const LUN: Lun = Lun([0; 8]);

/// Where the ends are on the Ethernet.
const TARGET: usize = 0;
const INITIATOR: usize = 1;

/// How long a frame takes on the Ethernet.
const TICK: Duration = Duration::from_nanos(2);

/// A frame is overtaken by so many that leave later.
pub(crate) const fn late(behind: u32) -> Fate {
    Fate::ComesLate(Duration::from_nanos(2 * behind as u64 + 1))
}

/// A frame is lost, or arrives.
pub(crate) const fn lost_if(is_lost: bool) -> Fate {
    if is_lost { Fate::IsLost } else { Fate::Arrives }
}

/// A second copy follows the first.
pub(crate) const TWICE: Fate = Fate::ComesTwice(Duration::ZERO);

/// What both ends agree upon when both are of our making.
pub(crate) fn all() -> Fcp {
    Fcp {
        retry: true,
        confirm: true,
        rec: true,
        retry_identifier: true,
    }
}

/// What is left where the other end knows nothing of recovery.
pub(crate) fn plain() -> Fcp {
    Fcp {
        rec: true,
        ..Fcp::default()
    }
}

pub(crate) fn peer(own: u32, other: u32, fcp: Fcp) -> FcpPeer {
    let address = |fc_id| PeerAddress {
        fc_id: FcId(fc_id),
        mac: Mac::of_port(Mac::VN2VN_FC_MAP, FcId(fc_id)),
    };
    FcpPeer {
        address: address(other),
        own: address(own),
        tag: None,
        wwpn: Wwn(0x2000_0000_0000_0000 | u64::from(other)),
        payload_max: 2112,
        fcp,
        e_d_tov: Duration::from_secs(2),
        r_a_tov: Duration::from_secs(10),
    }
}

/// The header of a request of the initiator's.
pub(crate) fn request(r_ctl: RCtl, kind: FrameType, ox_id: u16) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        ..peer(1, 2, all()).header(r_ctl, kind, OxId(ox_id), RxId::UNASSIGNED)
    }
}

impl Pair {
    /// A login that agreed upon `fcp`.
    pub(crate) fn new(fcp: Fcp) -> Self {
        Self::limited(fcp, FcpInitiatorConfig::default(), FcpLimits::default())
    }

    /// The same, of ends that are told these limits.
    pub(crate) fn limited(fcp: Fcp, config: FcpInitiatorConfig, limits: FcpLimits) -> Self {
        let bytes = (0..1 << 20).map(|at: u32| ((at >> 9) ^ (at * 31)) as u8);
        let mut pair = Self {
            now: Duration::from_secs(1000),
            initiator: FcpInitiator::new(config),
            target: FcpTarget::new(limits),
            disk: Disk::new(bytes.collect()),
            told: Vec::new(),
            trace: Vec::new(),
            ethernet: Ethernet::new(0).serial(TICK),
            ticks: Now::ZERO,
        };
        pair.initiator.peer_up(REMOTE, peer(1, 2, fcp));
        pair.target.peer_up(REMOTE, peer(2, 1, fcp));
        pair
    }

    /// The same with an Ethernet that does as planned: each frame has a fate by its number in its
    /// direction, and by whether it goes to the target.
    pub(crate) fn with(fcp: Fcp, plan: impl FnMut(usize, bool) -> Fate + 'static) -> Self {
        let mut pair = Self::new(fcp);
        pair.plan(plan);
        pair
    }

    fn plan(&mut self, mut plan: impl FnMut(usize, bool) -> Fate + 'static) {
        self.ethernet
            .plan(move |(_, to), number, _| plan(number, to == TARGET));
    }

    /// The same, where one frame has another fate than to arrive.
    pub(crate) fn but_one(fcp: Fcp, victim: (usize, bool), fate: Fate) -> Self {
        let usual = Fate::Arrives;
        Self::with(fcp, move |at, to_target| {
            if (at, to_target) == victim {
                fate
            } else {
                usual
            }
        })
    }

    /// One frame will be lost.
    pub(crate) fn lose(&mut self, victim: (usize, bool)) {
        self.plan(move |at, to_target| lost_if((at, to_target) == victim));
    }

    /// A pair whose disk answers nothing by itself.
    pub(crate) fn stopped(fcp: Fcp) -> Self {
        let mut pair = Self::new(fcp);
        pair.disk.is_stopped = true;
        pair
    }

    pub(crate) fn read(&mut self, id: u64, block: u32, blocks: u16) {
        let into = vec![0xee; usize::from(blocks) * 512];
        self.execute(id, cdb10(0x28, block, blocks), Data::In(lease(into)));
    }

    pub(crate) fn write(&mut self, id: u64, block: u32, data: Vec<u8>) {
        let cdb = cdb10(0x2a, block, (data.len() / 512) as u16);
        self.execute(id, cdb, Data::Out(lease(data)));
    }

    /// A command without data.
    pub(crate) fn test(&mut self, id: u64) {
        self.execute(id, [0; 10], Data::None);
    }

    pub(crate) fn execute(&mut self, id: u64, cdb: [u8; 10], data: Data<HeapLease>) {
        let command = command(id, &cdb, data);
        let taken = self.initiator.execute(self.now, REMOTE, command);
        assert!(taken.is_ok());
    }

    /// Task management, by the name 5.
    pub(crate) fn manage(&mut self, function: FcpTmf) {
        let taken = self.initiator.manage(self.now, REMOTE, 5, LUN, function);
        assert_eq!(taken, Ok(()));
    }

    /// Lets frames pass until none is left.
    pub(crate) fn settle(&mut self) {
        loop {
            let any = self.transmit(INITIATOR) | self.transmit(TARGET);
            let Some(next) = self.ethernet.next() else {
                if any {
                    continue;
                }
                return;
            };
            self.ticks = next.max(self.ethernet.last());
            while let Some((to, frame)) = self.ethernet.arrived(self.ticks) {
                self.reach(to, &decode(&frame));
            }
        }
    }

    fn transmit(&mut self, from: usize) -> bool {
        let mut out = HeapFrames::default();
        let any = match from {
            TARGET => self.target.transmit(&mut out),
            _ => self.initiator.transmit(&mut out),
        };
        for frame in out.frames {
            let to_target = from == INITIATOR;
            self.trace.push(trace::line(to_target, &decode(&frame)));
            let link = (from, usize::from(!to_target));
            self.ethernet.send(self.ticks, link, &Bytes::from(frame));
        }
        any
    }

    fn reach(&mut self, to: usize, frame: &ReceivedFrame<'_>) {
        if to == TARGET {
            self.target.receive(self.now, REMOTE, frame);
        } else {
            self.initiator.receive(self.now, REMOTE, frame);
        }
        self.serve();
    }

    /// The disk does what it is to, and what the initiator tells is noted.
    pub(crate) fn serve(&mut self) {
        while let Some(event) = self.target.poll() {
            self.disk.serve(&mut self.target, event);
        }
        let told = std::iter::from_fn(|| self.initiator.poll());
        self.told.extend(told);
    }

    /// When either end wants to be woken.
    pub(crate) fn deadlines(&self) -> [Option<Now>; 2] {
        [self.initiator.next_deadline(), self.target.next_deadline()]
    }

    /// Lets time pass to the next deadline of either end; whether there is one.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(next) = self.deadlines().into_iter().flatten().min() else {
            return false;
        };
        self.expire(self.now.max(next));
        true
    }

    /// It is `now`.
    pub(crate) fn expire(&mut self, now: Now) {
        self.now = now;
        self.initiator.expire(now);
        self.target.expire(now);
        self.serve();
    }

    /// Lets frames and time pass until so many things have been told.
    pub(crate) fn until_told(&mut self, count: usize) {
        self.settle();
        let mut waits = 0;
        while self.told.len() < count && self.wait() {
            self.settle();
            waits += 1;
            assert!(waits < 1000, "it never ends");
        }
        assert!(self.told.len() >= count, "nothing is left to wait for");
    }

    /// Lets time pass, as far as `until`, with all that becomes due on the way.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(next) = self.deadlines().into_iter().flatten().min()
            && next <= end
        {
            self.wait();
            self.settle();
        }
        self.now = end;
    }

    /// The disk has carried out what it was asked to abort or to manage, and that is told.
    pub(crate) fn finish(&mut self) {
        self.disk.finish(&mut self.target);
        self.settle();
    }

    /// A frame that the initiator did not send comes to the target all the same.
    pub(crate) fn reach_target(&mut self, header: FrameHeader, payload: &[u8]) {
        self.reach(TARGET, &single(header, payload));
    }

    /// A frame that the target did not send comes to the initiator all the same.
    pub(crate) fn reach_initiator(&mut self, header: FrameHeader, payload: &[u8]) {
        self.reach(INITIATOR, &single(header, payload));
    }

    /// What the initiator sends now, which does not arrive.
    pub(crate) fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut out = HeapFrames::default();
        self.initiator.transmit(&mut out);
        out.frames
    }

    /// What the target sends now, which does not arrive.
    pub(crate) fn answered(&mut self) -> Vec<Vec<u8>> {
        let mut out = HeapFrames::default();
        self.target.transmit(&mut out);
        out.frames
    }

    /// A frame comes to the target.
    pub(crate) fn deliver(&mut self, frame: &[u8]) {
        self.reach(TARGET, &decode(frame));
    }

    /// What left since this was asked last.
    pub(crate) fn traced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    /// The command that was stopped first.
    pub(crate) fn tag(&self) -> Tag {
        self.disk.stopped[0]
    }

    /// The disk sends data of that.
    pub(crate) fn send_data_in(&mut self, data: Vec<u8>) {
        let tag = self.tag();
        self.target.send_data_in(REMOTE, tag, 0, lease(data));
    }

    /// The disk ends that, and what comes of it.
    pub(crate) fn end(&mut self, status: Status, sense: &[u8], (read, written): (u64, u64)) {
        let completed = Completed {
            status,
            sense: SenseBytes::new(sense),
            ..good(read, written)
        };
        self.target.complete(REMOTE, self.tag(), &completed);
        self.settle();
    }

    /// Frames that left for the target, and for the initiator.
    pub(crate) fn frames(&self) -> [usize; 2] {
        [(INITIATOR, TARGET), (TARGET, INITIATOR)].map(|link| self.ethernet.count(link))
    }

    /// The command that was told last to be done.
    #[track_caller]
    pub(crate) fn done(&self) -> &Done<HeapLease> {
        match self.told.last() {
            Some(FcpInitiatorEvent::Done(done)) => done,
            other => panic!("{other:?}"),
        }
    }

    /// What the read brought that was told last to be done.
    #[track_caller]
    pub(crate) fn data(&self) -> Vec<u8> {
        match &self.done().data {
            Data::In(into) => bytes(into),
            other => panic!("{other:?}"),
        }
    }

    /// The command that failed, if nothing else was told.
    #[track_caller]
    pub(crate) fn failed(&self) -> &FcpFailed<HeapLease> {
        match &self.told[..] {
            [FcpInitiatorEvent::Failed(failed)] => failed,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn lease(bytes: Vec<u8>) -> HeapLease {
    scsi::medium::Lease::from_bytes(bytes)
}

fn single(header: FrameHeader, payload: &[u8]) -> ReceivedFrame<'_> {
    let (sof, eof) = frames::SINGLE;
    ReceivedFrame {
        sof,
        eof,
        header,
        payload,
    }
}

pub(crate) fn decode(bytes: &[u8]) -> ReceivedFrame<'_> {
    let (_, payload) = EthernetHeader::parse(bytes).unwrap();
    fcoe::decode(payload).unwrap()
}
