//! What a request has to ask outside of the server: questions that are open, and the answers to those that were asked.
//!
//! A request is handled under the lock of the server, and nothing waits under that lock. A verb that needs a webhook
//! gives up with an open question; the question is asked without the lock, and the verb runs again from its start, now
//! with the answer. What has changed in between changes the question, which is then asked anew: nothing is decided by
//! an answer about an object that is no longer the stored one. Times and generated names are those of the first run.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{clock::Chance, status::StatusError};

/// Questions of one request. One that has more, because objects keep changing or too many are deleted, is refused.
const QUESTIONS_LEN_MAX: usize = 10_000;

/// A call of a webhook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// As errors show it, with the query.
    pub(crate) url: String,
    /// The host and port to connect to, when they are not those of the URL.
    pub(crate) dial: Option<String>,
    /// Certificates to trust, as PEM in base64; those of the machine when it is empty.
    pub(crate) trusted: String,
    /// The review; it gets its uid when it is sent.
    pub(crate) review: Value,
    pub(crate) timeout: Duration,
}

/// What a webhook has answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The uid that the review was sent with.
    pub(crate) uid: String,
    pub(crate) outcome: Result<Bytes, String>,
}

/// The questions and the warnings of one request, over all of its runs.
#[derive(Default)]
pub(crate) struct Session {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    known: Vec<(Question, Reply)>,
    open: Vec<Question>,
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
    start: Option<(Chance, jiff::Timestamp)>,
}

impl Session {
    /// The answers to all of these questions.
    ///
    /// # Errors
    /// Some are not known: the caller hands this refusal on, and is called again when they are.
    pub(crate) fn ask_all(&self, questions: Vec<Question>) -> Result<Vec<Reply>, StatusError> {
        let mut inner = self.inner.lock();
        let known: Vec<Option<Reply>> = questions
            .iter()
            .map(|question| inner.known.iter().find(|(asked, _)| asked == question).map(|(_, reply)| reply.clone()))
            .collect();
        if inner.known.len() + questions.len() > QUESTIONS_LEN_MAX {
            return Err(StatusError::timed_out());
        }
        let missing = questions.into_iter().zip(&known).filter(|(_, reply)| reply.is_none());
        let missing: Vec<Question> = missing.map(|(question, _)| question).collect();
        if missing.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        inner.open.extend(missing);
        Err(StatusError::waiting())
    }

    /// The answer to one question; see [`Self::ask_all`].
    pub(crate) fn ask(&self, question: Question) -> Result<Reply, StatusError> {
        let mut replies = self.ask_all(vec![question])?;
        Ok(replies.pop().expect("one question has one answer"))
    }

    /// Begins a run: its warnings are its own, its chance and its time those of the first.
    pub(crate) fn begin(&self, chance: &Chance, now: jiff::Timestamp) -> (Chance, jiff::Timestamp) {
        let mut inner = self.inner.lock();
        inner.warnings.clear();
        inner.annotations.clear();
        debug_assert!(inner.open.is_empty(), "a run begins when all questions of the run before were answered");
        inner.start.get_or_insert_with(|| (chance.clone(), now)).clone()
    }

    pub(crate) fn is_first_run(&self) -> bool {
        self.inner.lock().known.is_empty()
    }

    /// Whether the run has left something open.
    pub(crate) fn waits(&self) -> bool {
        !self.inner.lock().open.is_empty()
    }

    /// Nothing is open.
    ///
    /// # Errors
    /// The run waits: nothing of what it has found since counts.
    pub(crate) fn settled(&self) -> Result<(), StatusError> {
        if self.waits() { Err(StatusError::waiting()) } else { Ok(()) }
    }

    /// What a run has left open.
    pub(crate) fn take_open(&self) -> Vec<Question> {
        std::mem::take(&mut self.inner.lock().open)
    }

    pub(crate) fn learn(&self, answers: impl IntoIterator<Item = (Question, Reply)>) {
        self.inner.lock().known.extend(answers);
    }

    /// A warning that the client gets whatever becomes of the request; each text once.
    pub(crate) fn warn(&self, text: &str) {
        let mut inner = self.inner.lock();
        if !inner.warnings.iter().any(|known| known == text) {
            inner.warnings.push(text.into());
        }
    }

    /// The same of several.
    pub(crate) fn warn_all<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) {
        texts.into_iter().for_each(|text| self.warn(text.as_ref()));
    }

    /// An annotation for the audit log.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        self.inner.lock().annotations.insert(key.into(), value.into());
    }

    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        self.inner.lock().annotations.clone()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.inner.lock().warnings.clone()
    }
}
