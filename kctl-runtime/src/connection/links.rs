//! As many connections as streams need. One of HTTP/2 has a bound of streams, and what is beyond it waits, for ever where watches
//! never end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper_util::client::legacy;
use kube::client::Body;
use tokio::time::Instant;

use super::{answer::Answer, connector::Connector, link::Link, ways::Limits};

/// Connections of one use to one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Links {
    connector: Connector,
    limits: Limits,
    room: Room,
    /// Streams of one connection.
    n_max: Arc<AtomicUsize>,
    all: Arc<parking_lot::Mutex<Vec<Arc<Link>>>>,
}

/// Whether streams that are not answered say something about the bound of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Given,
    /// They do where every stream is answered at once and stays open.
    Learned,
}

impl Links {
    pub(super) fn new(connector: Connector, limits: Limits, room: Room) -> Self {
        let n_max = Arc::new(AtomicUsize::new(limits.streams));
        Self { connector, limits, room, n_max, all: Arc::default() }
    }

    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<Answer>, legacy::Error> {
        let link = self.link();
        let mut stream = Stream::of(link.clone());
        if self.room == Room::Learned {
            let (since, slow) = (Instant::now(), self.limits.answer_within);
            stream.unanswered = Some(Box::new(Unanswered { since, slow, n_max: self.n_max.clone() }));
        }
        let answer = link.send(request).await?;
        stream.answered();
        Ok(answer.map(|body| Answer::of(body).on(stream)))
    }

    /// The first that has room, so that streams that end leave others empty.
    fn link(&self) -> Arc<Link> {
        let mut all = self.all.lock();
        let n_max = self.n_max.load(Ordering::Relaxed);
        let roomy = all.iter().find(|link| link.n_open.load(Ordering::Relaxed) < n_max);
        let link = roomy.cloned().unwrap_or_else(|| {
            let link = Arc::new(Link::new(&self.connector, self.limits));
            all.push(link.clone());
            link
        });
        link.n_open.fetch_add(1, Ordering::Relaxed);
        link
    }
}

/// A stream that takes room, from its request to the end of its answer.
pub(super) struct Stream {
    link: Arc<Link>,
    /// Boxed: nearly all are answered.
    unanswered: Option<Box<Unanswered>>,
    is_answered: bool,
}

struct Unanswered {
    since: Instant,
    slow: Duration,
    n_max: Arc<AtomicUsize>,
}

impl Stream {
    /// Of a link whose `n_open` counts it already.
    fn of(link: Arc<Link>) -> Self {
        Self { link, unanswered: None, is_answered: false }
    }

    /// Its answer broke off: what comes next on its link makes a connection first.
    pub(super) fn lost(&self) {
        self.link.lost();
    }

    fn answered(&mut self) {
        (self.is_answered, self.unanswered) = (true, None);
        self.link.n_answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.link.n_open.fetch_sub(1, Ordering::Relaxed);
        if self.is_answered {
            self.link.n_answered.fetch_sub(1, Ordering::Relaxed);
        } else if let Some(unanswered) = &self.unanswered
            && unanswered.since.elapsed() >= unanswered.slow
        {
            // So many had an answer while this one waited: no connection to this server gets more from now on.
            let n_answered = self.link.n_answered.load(Ordering::Relaxed);
            if n_answered > 0 && n_answered < unanswered.n_max.fetch_min(n_answered, Ordering::Relaxed) {
                tracing::info!(
                    streams = n_answered,
                    "a watch got no answer beside others: fewer of them share a connection from now on"
                );
            }
        }
    }
}
