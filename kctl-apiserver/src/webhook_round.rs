//! The webhook calls of one request: the pending ones, and the replies to earlier ones.
//!
//! A request is handled under the lock of the server, and no call may wait under that lock. A verb that needs a webhook
//! ends its run with [`StatusError::waiting`] and stores the call here. `server::service` sends the pending calls
//! without the lock, adds their replies, and runs the verb again from its start. A reply is found by its call, which
//! contains the review. If the stored object has changed in between, the review differs and the webhook is called
//! again. So no decision rests on an outdated object. Time and generated names are kept from the first run, so that the
//! same object gives the same review.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{clock::Rng, status::StatusError};

/// The number of webhook calls of one request. More fail with `Timeout` (504): the object keeps changing between runs,
/// or a very large collection is deleted.
const CALLS_LEN_MAX: usize = 10_000;

/// One call of an admission or conversion webhook. Two calls are the same if all fields are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WebhookCall {
    /// The URL with its query `timeout=…s`.
    pub(crate) url: String,
    /// The `host:port` to connect to, if it differs from the URL's: the address of a Service.
    pub(crate) dial: Option<String>,
    /// `caBundle`: certificates to trust, as PEM in base64. If empty, the certificates of the machine are trusted.
    pub(crate) trusted: String,
    /// The `AdmissionReview` or `ConversionReview`, without `request.uid`, which is set when the review is sent.
    pub(crate) review: Value,
    /// `timeoutSeconds` of the webhook.
    pub(crate) timeout: Duration,
}

/// The outcome of a [`WebhookCall`].
#[derive(Clone, Debug)]
pub(crate) struct WebhookReply {
    /// The `request.uid` that was sent. The response has to repeat it.
    pub(crate) uid: String,
    /// The body of a successful response, or the message of the failed call.
    pub(crate) outcome: Result<Bytes, String>,
}

/// The webhook calls, warnings and audit annotations of one request, over all of its runs.
#[derive(Default)]
pub(crate) struct WebhookRound {
    inner: Mutex<Inner>,
}

/// The state behind the lock.
#[derive(Default)]
struct Inner {
    /// Completed calls, at most [`CALLS_LEN_MAX`].
    replies: HashMap<WebhookCall, WebhookReply>,
    /// Calls that the current run needs and that have no reply. Empty when a run begins.
    pending: Vec<WebhookCall>,
    /// `Warning` headers of the response, of the current run only.
    warnings: Vec<String>,
    /// The same warnings. A search in `warnings` would take quadratic time under the lock of the server: a body of
    /// 3 MiB may have more than 100,000 unknown fields, each with a warning.
    warned: HashSet<String>,
    /// Annotations of the audit event, of the current run only.
    annotations: BTreeMap<String, String>,
    /// The random sequence and the time of the first run, which later runs repeat.
    start: Option<(Rng, jiff::Timestamp)>,
}

impl WebhookRound {
    /// Returns the replies to all of these calls, in their order.
    ///
    /// # Errors
    /// [`StatusError::waiting`] if a reply is missing: the verb returns it, and runs again when all replies
    /// have arrived. `Timeout` if the request would make more than [`CALLS_LEN_MAX`] calls.
    pub(crate) fn call_all(&self, calls: Vec<WebhookCall>) -> Result<Vec<WebhookReply>, StatusError> {
        let mut inner = self.inner.lock();
        let replies: Vec<Option<WebhookReply>> = calls.iter().map(|call| inner.replies.get(call).cloned()).collect();
        if inner.replies.len() + calls.len() > CALLS_LEN_MAX {
            return Err(StatusError::timed_out());
        }
        let missing = calls.into_iter().zip(&replies).filter(|(_, reply)| reply.is_none());
        let missing: Vec<WebhookCall> = missing.map(|(call, _)| call).collect();
        if missing.is_empty() {
            return Ok(replies.into_iter().flatten().collect());
        }
        inner.pending.extend(missing);
        Err(StatusError::waiting())
    }

    /// Returns the reply to one call; see [`Self::call_all`].
    pub(crate) fn call(&self, call: WebhookCall) -> Result<WebhookReply, StatusError> {
        let mut replies = self.call_all(vec![call])?;
        Ok(replies.pop().expect("one call has one reply"))
    }

    /// Begins a run: clears warnings and annotations of the previous run, and returns the random sequence and the time
    /// of the first run.
    pub(crate) fn begin_run(&self, rng: &Rng, now: jiff::Timestamp) -> (Rng, jiff::Timestamp) {
        let mut inner = self.inner.lock();
        inner.warnings.clear();
        inner.warned.clear();
        inner.annotations.clear();
        debug_assert!(inner.pending.is_empty(), "a run begins after the pending calls of the run before have replies");
        inner.start.get_or_insert_with(|| (rng.clone(), now)).clone()
    }

    /// Returns `true` until a webhook has replied.
    pub(crate) fn is_first_run(&self) -> bool {
        self.inner.lock().replies.is_empty()
    }

    /// Returns `true` if the current run needs calls that have no reply.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.inner.lock().pending.is_empty()
    }

    /// Checks that no call is pending.
    ///
    /// # Errors
    /// [`StatusError::waiting`] otherwise. Results that the run has computed since may be wrong, so the verb must
    /// return.
    pub(crate) fn check_complete(&self) -> Result<(), StatusError> {
        if self.is_waiting() { Err(StatusError::waiting()) } else { Ok(()) }
    }

    /// Takes the calls that the run left pending.
    pub(crate) fn take_pending(&self) -> Vec<WebhookCall> {
        std::mem::take(&mut self.inner.lock().pending)
    }

    /// Adds the replies to pending calls.
    pub(crate) fn add_replies(&self, replies: impl IntoIterator<Item = (WebhookCall, WebhookReply)>) {
        self.inner.lock().replies.extend(replies);
    }

    /// Adds a warning, which the client gets even if the request fails. A repeated warning is dropped, as in
    /// `recorder.AddWarning` of `k8s.io/apiserver/pkg/endpoints/filters/warning.go`.
    pub(crate) fn warn(&self, text: &str) {
        let mut inner = self.inner.lock();
        if inner.warned.insert(text.to_owned()) {
            inner.warnings.push(text.into());
        }
    }

    /// Adds several warnings.
    pub(crate) fn warn_all<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) {
        texts.into_iter().for_each(|text| self.warn(text.as_ref()));
    }

    /// Sets an annotation of the audit event.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        self.inner.lock().annotations.insert(key.into(), value.into());
    }

    /// Returns the annotations of the audit event.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        self.inner.lock().annotations.clone()
    }

    /// Returns the warnings in the order in which they were added.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.inner.lock().warnings.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each call is compared with all earlier ones.
    #[test]
    fn replies_to_many_calls_are_found() {
        let call = |n: usize| WebhookCall {
            url: "https://webhook".into(),
            dial: None,
            trusted: String::new(),
            review: json!({ "equal": vec!["same"; 100], "last": n }),
            timeout: Duration::from_secs(1),
        };
        let reply = |n: usize| WebhookReply { uid: n.to_string(), outcome: Err(String::new()) };
        let round = WebhookRound::default();
        round.add_replies((1..CALLS_LEN_MAX).map(|n| (call(n), reply(n))));
        for n in 1..CALLS_LEN_MAX {
            assert_eq!(round.call(call(n)).unwrap().uid, n.to_string());
        }
    }

    /// Takes minutes if each warning is compared with all earlier ones.
    #[test]
    fn many_warnings_are_kept_once_in_order() {
        let round = WebhookRound::default();
        let texts: Vec<String> = (0..200_000).map(|n| format!("unknown field \"spec.a{n}\"")).collect();
        round.warn_all(&texts);
        round.warn_all(&texts[..10]);
        assert!(round.warnings() == texts);
        round.begin_run(&Rng::new(0), jiff::Timestamp::UNIX_EPOCH);
        round.warn(&texts[1]);
        assert_eq!(round.warnings(), texts[1..2]);
    }
}
