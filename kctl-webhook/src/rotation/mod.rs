//! Certificates in a Secret, and when they are made anew: a pure function of what is stored and of the time.
//!
//! API servers trust all authorities of the bundle. A new authority signs nothing before every configuration trusts it, and an
//! old one is trusted until the last certificate that it has signed runs out. So whichever certificate a replica serves, a
//! call never fails: nobody has to know which replica has read what.
//!
//! ```text
//! authority 1  ──────────────────────────────────────────────┤ trusted until its last certificate has run out
//! authority 2            ├─ trusted ─┼─ signs ───────────────────────────
//! served       1.1 ──┤ 1.2 ──────────┤ 2.1 ─────────────────
//! ```

mod issue;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::server::Pair;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long an authority is valid.
pub const AUTHORITY_VALID: SignedDuration = DAY.saturating_mul(365);
/// An authority with less than this left is followed by the next one: twice as long as what it signs is valid.
pub const AUTHORITY_LEFT: SignedDuration = DAY.saturating_mul(180);
/// How long a certificate is valid.
pub const CERTIFICATE_VALID: SignedDuration = DAY.saturating_mul(90);
/// A certificate with less than this left is made anew: a third, as cert-manager does it.
pub const CERTIFICATE_LEFT: SignedDuration = DAY.saturating_mul(30);
/// After all configurations trust a new authority it waits so long before it signs: API servers read configurations by watches.
pub const SETTLE: SignedDuration = SignedDuration::from_mins(10);
/// So many authorities are trusted at most; the oldest goes first. Two overlap; a third one is there when a Secret was broken.
pub const AUTHORITIES_LEN_MAX: usize = 4;

/// The fields of the Secret: those of any TLS Secret with an authority, its key, and what is known of them.
pub const FIELDS: [&str; 5] = ["tls.crt", "tls.key", "ca.crt", "ca.key", "state.json"];

/// Why nothing could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// No certificate could be made; a name of it may be none.
    #[error("no certificate can be made")]
    NotMade(#[from] rcgen::Error),
    /// The time is beyond what can be counted.
    #[error("the time of this machine can't be used for certificates")]
    Time(#[from] jiff::Error),
    /// The state can't be written.
    #[error("the state of certificates can't be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

/// What is known of the certificates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    /// The newest first: it signs, or will.
    authorities: Vec<Authority>,
    /// What is served.
    serving: Serving,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authority {
    id: String,
    certificate: String,
    /// Since when it is trusted.
    since: Timestamp,
    not_after: Timestamp,
    /// When the last certificate that it has signed runs out.
    needed_until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Serving {
    /// The id of the authority that has signed it.
    by: String,
    not_after: Timestamp,
    names: Vec<String>,
}

/// The contents of the certificate Secret.
#[derive(Clone, PartialEq)]
pub struct Stored {
    state: State,
    pair: Pair,
    authority_key: String,
}

/// The role of the replica that asks for the next rotation step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The leader, or the only process; with whether every configuration trusts all authorities.
    Leader {
        /// Whether they do.
        trusted: bool,
    },
    /// A process that waits: it repairs what is of no use to anybody, and changes nothing that works.
    Standby,
}

impl Stored {
    /// Reads the fields of a Secret; none where something is missing or does not fit together.
    pub fn read(fields: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |name: &str| String::from_utf8(fields.get(name)?.clone()).ok();
        let state: State = serde_json::from_str(&text("state.json")?).ok()?;
        let pair = Pair { certificate: text("tls.crt")?, key: text("tls.key")? };
        let is_usable = crate::server::Served::default().set(pair.clone()).is_ok();
        let stored = Self { state, pair, authority_key: text("ca.key")? };
        let is_signed = stored.state.authorities.iter().any(|authority| authority.id == stored.state.serving.by);
        (is_usable && is_signed && text("ca.crt")? == stored.bundle()).then_some(stored)
    }

    /// Writes the fields.
    ///
    /// # Errors
    /// The state can't be written.
    pub fn fields(&self) -> Result<BTreeMap<String, String>, RotationError> {
        let state = serde_json::to_string(&self.state)?;
        let Pair { certificate, key } = self.pair.clone();
        let values = [certificate, key, self.bundle(), self.authority_key.clone(), state];
        Ok(FIELDS.into_iter().map(str::to_owned).zip(values).collect())
    }

    /// Returns the certificate and key to serve.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// The authorities to trust, as PEM.
    pub fn bundle(&self) -> String {
        self.state.authorities.iter().map(|authority| authority.certificate.as_str()).collect()
    }

    /// The authority that has signed what is served: without it in a configuration, calls fail.
    pub fn needed(&self) -> &str {
        let by = &self.state.serving.by;
        let signed = self.state.authorities.iter().find(|authority| authority.id == *by);
        signed.map_or("", |authority| &authority.certificate)
    }
}

/// Returns what is to be stored instead of what is there; none where nothing is due.
///
/// # Errors
/// A certificate could not be made.
pub fn due(
    stored: Option<&Stored>,
    names: &[String],
    now: Timestamp,
    who: Who,
) -> Result<Option<Stored>, RotationError> {
    let Some(stored) = stored.filter(|stored| works(stored, names, now)) else {
        return anew(stored, names, now).map(Some);
    };
    let Who::Leader { trusted } = who else { return Ok(None) };
    let mut next = stored.clone();
    // One that signs is needed, whatever its certificate says.
    next.state.authorities.retain(|authority| authority.id == stored.state.serving.by || authority.needed_until > now);
    let newest = &stored.state.authorities[0];
    let signs = newest.id == stored.state.serving.by;
    if signs && left(newest.not_after, now) < AUTHORITY_LEFT {
        let authority = add_authority(&mut next.state, now)?;
        next.authority_key = authority.key;
    } else if !signs && trusted && now.duration_since(newest.since) >= SETTLE
        || signs && left(stored.state.serving.not_after, now) < CERTIFICATE_LEFT
    {
        sign(&mut next, names, now)?;
    }
    Ok((next != *stored).then_some(next))
}

fn left(until: Timestamp, now: Timestamp) -> SignedDuration {
    until.duration_since(now)
}

/// Whether what is served is valid, and for all names.
fn works(stored: &Stored, names: &[String], now: Timestamp) -> bool {
    let Serving { not_after, names: served, .. } = &stored.state.serving;
    let is_signed = stored
        .state
        .authorities
        .iter()
        .any(|authority| authority.id == stored.state.serving.by && authority.not_after > now);
    *not_after > now && is_signed && names.iter().all(|name| served.contains(name))
}

/// Everything new; authorities that are still needed stay trusted.
fn anew(stored: Option<&Stored>, names: &[String], now: Timestamp) -> Result<Stored, RotationError> {
    let known = stored.map(|stored| stored.state.authorities.clone()).unwrap_or_default();
    let serving = Serving { by: String::new(), not_after: now, names: Vec::new() };
    let mut state = State { authorities: known, serving };
    state.authorities.retain(|authority| authority.needed_until > now);
    let authority_key = add_authority(&mut state, now)?.key;
    let mut stored = Stored { state, pair: Pair { certificate: String::new(), key: String::new() }, authority_key };
    sign(&mut stored, names, now)?;
    Ok(stored)
}

fn add_authority(state: &mut State, now: Timestamp) -> Result<issue::Authority, RotationError> {
    // Two that are made within a millisecond are never in one bundle: the second one replaces a state that the first is in.
    let id = now.as_millisecond().to_string();
    let not_after = now.checked_add(AUTHORITY_VALID)?;
    let made = issue::authority(&id, now, not_after)?;
    let needed_until = now.checked_add(CERTIFICATE_VALID)?;
    let certificate = made.certificate.clone();
    state.authorities.insert(0, Authority { id, certificate, since: now, not_after, needed_until });
    state.authorities.truncate(AUTHORITIES_LEN_MAX);
    Ok(made)
}

/// Has the newest authority sign a certificate.
fn sign(stored: &mut Stored, names: &[String], now: Timestamp) -> Result<(), RotationError> {
    let not_after = now.checked_add(CERTIFICATE_VALID)?;
    let newest = &mut stored.state.authorities[0];
    let (certificate, key) = issue::certificate(&newest.id, &stored.authority_key, names, now, not_after)?;
    newest.needed_until = not_after;
    stored.state.serving = Serving { by: newest.id.clone(), not_after, names: names.to_vec() };
    stored.pair = Pair { certificate, key };
    Ok(())
}

#[cfg(test)]
mod tests;
