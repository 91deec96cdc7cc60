//! What happens, as server-sent events: `/v1/events`, and `/v1/stats` for those that ask so.
//!
//! Each reader has its own last look, with which the next one is compared when it has read what
//! came of the last: nothing is queued for a slow reader, and nothing is missed by it. One that
//! does not read at all loses its connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use futures_util::stream::unfold;
use scsi::statistics::CoarseLatency;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Answer, ApiState, Caller, Problem, blocking};
use crate::alarm::Alarm;
use crate::plane::{Fabric, FabricMember, Plane, Session};

/// How many readers of events there can be, on all listeners.
pub(super) const READERS: usize = 16;

/// How often it is looked whether something has happened.
const LOOK: Duration = Duration::from_secs(1);

/// What can happen, as a reader is told of it.
type Happening = (&'static str, Value);

/// A reader of events, until it leaves or may not look any more.
struct Reader<L> {
    api: ApiState,
    caller: Caller,
    ticks: Interval,
    look: L,
    untold: VecDeque<Happening>,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn events(State(api): State<ApiState>, caller: Caller) -> Answer<Response> {
    let mut before: Option<Facts> = None;
    let look = move |mut now: Facts| {
        if let Some(before) = &before {
            now.keep_untold(before);
        }
        let told = match &before {
            None => vec![("served", json!({ "generation": now.generation }))],
            Some(before) => happened(before, &now),
        };
        before = Some(now);
        told
    };
    stream(api, caller, LOOK, Facts::of, look)
}

/// The counters of volumes, once or again and again.
pub(super) async fn stats(
    State(api): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    uri: Uri,
) -> Answer<Response> {
    let every = every(&uri)?;
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        let stats = blocking(move || api.plane.stats());
        return Ok(Json(stats.await?).into_response());
    }
    let look = |now: Value| vec![("stats", now)];
    let read = |plane: &Plane| serde_json::to_value(plane.stats()).unwrap_or_default();
    stream(api, caller, every, read, look)
}

/// `?every=5`, in seconds.
fn every(uri: &Uri) -> Answer<Duration> {
    let wrong = |what: &str| {
        Problem::malformed(what)
            .at("the query")
            .way_out("give every=SECONDS, from 1 to 3600, with Accept: text/event-stream")
    };
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(query) = query.map_err(|error| wrong(&error.body_text()))?;
    let mut every = LOOK;
    for (key, value) in &query {
        let seconds = value.trim_end_matches('s').parse().ok();
        match seconds.filter(|seconds| (1..=3600).contains(seconds)) {
            Some(seconds) if key == "every" => every = Duration::from_secs(seconds),
            _ => return Err(wrong(&format!("{key}={value} is not taken here"))),
        }
    }
    Ok(every)
}

fn stream<T: Send + 'static>(
    api: ApiState,
    caller: Caller,
    every: Duration,
    read: fn(&Plane) -> T,
    look: impl FnMut(T) -> Vec<Happening> + Send + 'static,
) -> Answer<Response> {
    let place = Arc::clone(&api.readers).try_acquire_owned();
    let place = place.map_err(|_| Problem::crowded(READERS))?;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let reader = Reader {
        api,
        caller,
        ticks,
        look,
        untold: VecDeque::new(),
        _place: place,
    };
    let events = unfold(reader, move |reader| next(reader, read));
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// Waits for something to tell.
async fn next<T: Send + 'static, L: FnMut(T) -> Vec<Happening>>(
    mut reader: Reader<L>,
    read: fn(&Plane) -> T,
) -> Option<(Result<Event, Infallible>, Reader<L>)> {
    loop {
        if let Some((kind, data)) = reader.untold.pop_front() {
            let event = Event::default().event(kind).data(data.to_string());
            return Some((Ok(event), reader));
        }
        tokio::select! {
            biased;
            () = reader.caller.ended(&reader.api.tokens) => return None,
            _ = reader.ticks.tick() => {}
        }
        let plane = Arc::clone(&reader.api.plane);
        let facts = blocking(move || read(&plane)).await.ok()?;
        reader.untold.extend((reader.look)(facts));
    }
}

/// What tells sessions apart: a number; logins of Fibre Channel have none, so their initiator, port
/// and interface do.
type SessionKey = (Option<u16>, String, Option<String>, String);

type Sessions = BTreeMap<SessionKey, Session>;

/// What is compared.
#[derive(Debug, Default)]
struct Facts {
    generation: u64,
    /// `None`: the cores have not told.
    sessions: Option<Sessions>,
    /// The ports that are logged in to fabrics, by switch and WWPN.
    members: BTreeMap<(String, String), FabricMember>,
    /// The switches that have not told.
    silent: BTreeSet<String>,
    absent: BTreeSet<String>,
    alarms: BTreeSet<Alarm>,
}

impl Facts {
    fn of(plane: &Plane) -> Self {
        let sessions = plane.sessions().ok();
        let keyed = |one: Session| (key(&one), one);
        let sessions = sessions.map(|all| all.into_iter().map(keyed).collect());
        let (mut members, mut silent) = (BTreeMap::new(), BTreeSet::new());
        for told in plane.fabrics_told() {
            match told {
                Ok(fabric) => members.extend(members_of(fabric)),
                Err(switch) => {
                    silent.insert(switch);
                }
            }
        }
        let volumes = plane.stats().into_iter().filter(|volume| volume.absent);
        Self {
            generation: plane.served().generation,
            sessions,
            members,
            silent,
            absent: volumes.map(|volume| volume.volume).collect(),
            alarms: plane.alarms().into_iter().collect(),
        }
    }

    /// That nothing tells of sessions and logins is not that all have left: those of the look
    /// before are taken to be there.
    fn keep_untold(&mut self, before: &Self) {
        if self.sessions.is_none() {
            self.sessions.clone_from(&before.sessions);
        }
        let known = before.members.iter();
        let untold = known.filter(|((switch, _), _)| self.silent.contains(switch));
        let untold = untold.map(|(key, member)| (key.clone(), member.clone()));
        self.members.extend(untold);
    }
}

fn members_of(fabric: Fabric) -> impl Iterator<Item = ((String, String), FabricMember)> {
    let members = fabric.logins.into_iter();
    members.map(move |one| ((fabric.switch.clone(), one.wwpn.clone()), one))
}

fn key(one: &Session) -> SessionKey {
    (
        one.id,
        one.address.clone(),
        one.target.clone(),
        one.portal.clone(),
    )
}

/// What has happened between two looks.
fn happened(before: &Facts, now: &Facts) -> Vec<Happening> {
    let mut told = Vec::new();
    if now.generation != before.generation {
        told.push(("applied", json!({ "generation": now.generation })));
    }
    // A number that is used again is of another session.
    let gone = |old: &Sessions, new: &Sessions, kind| {
        let gone = old.iter().filter(|(id, one)| {
            let same = new.get(id).is_some_and(|other| is_same(one, other));
            !same
        });
        let tell = |(_, one): (&_, &Session)| (kind, json!(one));
        gone.map(tell).collect::<Vec<Happening>>()
    };
    if let (Some(before), Some(now)) = (&before.sessions, &now.sessions) {
        told.extend(gone(before, now, "session-out"));
        told.extend(gone(now, before, "session-in"));
    }
    told.extend(fabric_logins(before, now, "fabric-out"));
    told.extend(fabric_logins(now, before, "fabric-in"));
    let names = |old: &BTreeSet<String>, new: &BTreeSet<String>, kind, key: &str| {
        let new = new.difference(old);
        new.map(|name| (kind, json!({ key: name })))
            .collect::<Vec<Happening>>()
    };
    told.extend(names(
        &before.absent,
        &now.absent,
        "volume-absent",
        "volume",
    ));
    told.extend(names(&now.absent, &before.absent, "volume-back", "volume"));
    let alarms = |old: &BTreeSet<Alarm>, new: &BTreeSet<Alarm>, kind| {
        let new = new.difference(old);
        new.map(|alarm| (kind, json!(alarm)))
            .collect::<Vec<Happening>>()
    };
    told.extend(alarms(&before.alarms, &now.alarms, "alarm"));
    told.extend(alarms(&now.alarms, &before.alarms, "alarm-over"));
    told
}

/// The ports that were logged in to a fabric at one look, and not in the same way at the other.
fn fabric_logins(one: &Facts, other: &Facts, kind: &'static str) -> Vec<Happening> {
    let gone = one.members.iter();
    let gone = gone.filter(|(key, member)| other.members.get(*key) != Some(*member));
    let tell = |((switch, _), member): (&(String, String), &FabricMember)| {
        let mut told = json!(member);
        told["switch"] = json!(switch);
        (kind, told)
    };
    gone.map(tell).collect()
}

/// Whether two looks have seen one session. Its age and its counters have grown.
fn is_same(one: &Session, other: &Session) -> bool {
    let what_stays = |session: &Session| Session {
        age_s: 0,
        commands: 0,
        read_bytes: 0,
        written_bytes: 0,
        latency: CoarseLatency::default(),
        ..session.clone()
    };
    what_stays(one) == what_stays(other)
}

#[cfg(test)]
mod tests;
