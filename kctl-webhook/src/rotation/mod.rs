//! Rotation of the certificates of `run --webhook-secret`: which one is due is a pure function of the stored Secret and
//! of the time. For the files of `--webhook-cert-dir` see [`Certificate::Files`](crate::server::Certificate::Files).
//!
//! API servers trust all authorities of a bundle. A new authority signs nothing before each
//! configuration trusts it, and an old one is trusted until its last certificate has expired. So a
//! call succeeds with whichever certificate a replica serves, and no replica has to know what another replica has read.
//!
//! ```text
//! authority 1  ──────────────────────────────────────────────┤ trusted until its last certificate has expired
//! authority 2            ├─ trusted ─┼─ signs ───────────────────────────
//! served       1.1 ──┤ 1.2 ──────────┤ 2.1 ─────────────────
//! ```
//!
//! The caller reads the Secret, calls [`next_contents`], writes what it returns with the `resourceVersion`
//! that it read, and puts [`Stored::bundle`] into `caBundle` of each configuration. `kctl`'s `run
//! --webhook-secret` does that every ten seconds.
//!
//! ```
//! use jiff::{SignedDuration, Timestamp};
//! use kctl_webhook::rotation::{ReplicaRole, next_contents};
//!
//! let (names, day) = (["web.default.svc".to_owned()], SignedDuration::from_hours(24));
//! let now = Timestamp::now();
//! // Nothing is stored: any replica creates an authority and a certificate.
//! let first = next_contents(None, &names, now, ReplicaRole::Standby)?.expect("nothing is there");
//! // For 60 days nothing is due.
//! let leader = ReplicaRole::Leader { trusted: true };
//! assert!(next_contents(Some(&first), &names, now + day * 59, leader)?.is_none());
//! // With 30 of 90 days left the leader renews the certificate. The authority stays.
//! let renewed = next_contents(Some(&first), &names, now + day * 61, leader)?.expect("the certificate is due");
//! assert_eq!(renewed.bundle(), first.bundle());
//! assert!(renewed.pair() != first.pair());
//! # Ok::<(), kctl_webhook::rotation::RotationError>(())
//! ```

mod issue;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::server::Pair;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Lifetime of an authority: 365 days.
pub const AUTHORITY_VALID: SignedDuration = DAY.saturating_mul(365);
/// Remaining lifetime at which the next authority is created: 180 days, twice the lifetime of what
/// it signs.
pub const AUTHORITY_LEFT: SignedDuration = DAY.saturating_mul(180);
/// Lifetime of a certificate: 90 days.
pub const CERTIFICATE_VALID: SignedDuration = DAY.saturating_mul(90);
/// Remaining lifetime at which a certificate is renewed: 30 days, a third as with cert-manager.
pub const CERTIFICATE_LEFT: SignedDuration = DAY.saturating_mul(30);
/// Time for which each configuration trusts a new authority before it signs: API servers learn of configurations by
/// watches. The time counts from the first call of [`next_contents`] with `trusted: true`. A call with `trusted: false`
/// resets it.
pub const TRUST_PROPAGATION_DELAY: SignedDuration = SignedDuration::from_mins(10);
/// Maximum number of trusted authorities; the oldest is dropped first. Two overlap normally, and a
/// third one exists after a Secret was broken.
pub const AUTHORITIES_LEN_MAX: usize = 4;
/// Maximum number of names of a certificate that keeps the names of earlier ones; the oldest are dropped first.
const NAMES_LEN_MAX: usize = 64;

/// The keys of the Secret: the keys of a TLS Secret with an authority, the authority's key, and the state.
pub const FIELDS: [&str; 5] = ["tls.crt", "tls.key", "ca.crt", "ca.key", "state.json"];

/// The reason why no certificate could be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// The certificate could not be created; one of the names may be invalid.
    #[error("no certificate can be made")]
    NotMade(#[from] rcgen::Error),
    /// The time is out of range.
    #[error("the time of this machine can't be used for certificates")]
    Time(#[from] jiff::Error),
    /// The state can't be serialized.
    #[error("the state of certificates can't be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

/// The state of the rotation, in `state.json` of the Secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    /// Newest first: it signs, or will sign.
    authorities: Vec<Authority>,
    serving: Serving,
}

/// An authority in the bundle. Only the newest one has its private key in the Secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authority {
    /// The time of its creation in milliseconds.
    id: String,
    certificate: String,
    /// Time from which each configuration has trusted it, until it signs. `None` before that, and for the first authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trusted_since: Option<Timestamp>,
    /// Expiry of its certificate.
    not_after: Timestamp,
    /// Expiry of the last certificate that it has signed. Before the first one, [`CERTIFICATE_VALID`] after its creation.
    needed_until: Timestamp,
}

/// The served certificate, as far as decisions need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Serving {
    /// The id of the authority that signed it.
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

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The role of the replica that asks for the next rotation step.
///
/// Several replicas run the same code. Renewal is left to the leader, so that they don't compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaRole {
    /// The leader, or the only replica.
    Leader {
        /// `true` if each configuration trusts all authorities.
        trusted: bool,
    },
    /// Another replica: it replaces an expired or missing certificate, adds a missing name, and changes nothing else.
    Standby,
}

impl Stored {
    /// Reads the data of a Secret. Returns `None` if a field is missing or they don't belong
    /// together.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use kctl_webhook::rotation::{Stored, ReplicaRole, next_contents};
    ///
    /// assert!(Stored::read(&BTreeMap::new()).is_none());
    /// let made = next_contents(None, &["localhost".to_owned()], jiff::Timestamp::now(), ReplicaRole::Standby)?.unwrap();
    /// let data = made.fields()?.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    /// assert!(Stored::read(&data).is_some_and(|stored| stored.bundle() == made.bundle()));
    /// # Ok::<(), kctl_webhook::rotation::RotationError>(())
    /// ```
    pub fn read(fields: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |name: &str| String::from_utf8(fields.get(name)?.clone()).ok();
        let state: State = serde_json::from_str(&text("state.json")?).ok()?;
        let pair = Pair { certificate: text("tls.crt")?, key: text("tls.key")? };
        let is_usable = crate::server::Served::default().set(pair.clone()).is_ok();
        let stored = Self { state, pair, authority_key: text("ca.key")? };
        let is_signed = stored.state.authorities.iter().any(|authority| authority.id == stored.state.serving.by);
        (is_usable && is_signed && text("ca.crt")? == stored.bundle()).then_some(stored)
    }

    /// Returns the data of the Secret, under the keys of [`FIELDS`].
    ///
    /// # Errors
    /// The state can't be serialized.
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

    /// Returns all trusted authorities as PEM, for `caBundle`.
    pub fn bundle(&self) -> String {
        self.state.authorities.iter().map(|authority| authority.certificate.as_str()).collect()
    }

    /// Returns the authority that signed the served certificate, as PEM. A configuration without it
    /// rejects each call.
    pub fn signing_authority(&self) -> &str {
        let by = &self.state.serving.by;
        let signed = self.state.authorities.iter().find(|authority| authority.id == *by);
        signed.map_or("", |authority| &authority.certificate)
    }
}

/// Returns the contents to store next, or `None` if nothing is due.
///
/// `names` are the DNS names and addresses that callers use. A name that the served certificate
/// lacks makes it due. The new one keeps the old names until the next renewal, since other replicas
/// may still want them. If the stored key is not the key of the newest authority, the leader adds
/// an authority, which signs once it is trusted.
///
/// # Errors
/// A certificate could not be created.
pub fn next_contents(
    stored: Option<&Stored>,
    names: &[String],
    now: Timestamp,
    role: ReplicaRole,
) -> Result<Option<Stored>, RotationError> {
    let Some(stored) = stored.filter(|stored| is_valid(stored, now)) else {
        return replace_all(stored, names, now).map(Some);
    };
    let can_sign = issue::is_key_of(&stored.state.authorities[0].certificate, &stored.authority_key);
    if can_sign && !names.iter().all(|name| stored.state.serving.names.contains(name)) {
        return add_names(stored, names, now, role);
    }
    let ReplicaRole::Leader { trusted } = role else { return Ok(None) };
    let mut next = stored.clone();
    // The authority of the served certificate is needed, even if `needed_until` has passed.
    next.state.authorities.retain(|authority| authority.id == stored.state.serving.by || authority.needed_until > now);
    let newest = &stored.state.authorities[0];
    let signs = newest.id == stored.state.serving.by;
    if !can_sign || signs && remaining_lifetime(newest.not_after, now) < AUTHORITY_LEFT {
        // An authority that has signed nothing, and whose key is lost, would drop a needed one at `AUTHORITIES_LEN_MAX`.
        next.state.authorities.retain(|authority| can_sign || signs || authority.id != newest.id);
        let authority = add_authority(&mut next.state, now)?;
        next.authority_key = authority.key;
    } else if signs {
        if remaining_lifetime(stored.state.serving.not_after, now) < CERTIFICATE_LEFT {
            sign(&mut next, names, now)?;
        }
    } else if !trusted {
        next.state.authorities[0].trusted_since = None;
    } else {
        let since = *next.state.authorities[0].trusted_since.get_or_insert(now);
        if now.duration_since(since) >= TRUST_PROPAGATION_DELAY {
            sign(&mut next, names, now)?;
        }
    }
    Ok((next != *stored).then_some(next))
}

/// Returns the remaining lifetime; negative after the expiry.
fn remaining_lifetime(until: Timestamp, now: Timestamp) -> SignedDuration {
    until.duration_since(now)
}

/// Returns `true` if the served certificate and its authority are valid.
fn is_valid(stored: &Stored, now: Timestamp) -> bool {
    let not_after = stored.state.serving.not_after;
    let is_signed = stored
        .state
        .authorities
        .iter()
        .any(|authority| authority.id == stored.state.serving.by && authority.not_after > now);
    not_after > now && is_signed
}

/// Signs a certificate for the served names and the names of the caller, with an authority that is trusted already.
///
/// With the caller's names alone, replicas of two versions would replace each other's certificate at every pass of a
/// rolling update. Only the newest authority has its key in the Secret. One that has signed nothing yet signs as soon as
/// each configuration trusts it, without [`TRUST_PROPAGATION_DELAY`]: calls by the new name fail until then.
fn add_names(
    stored: &Stored,
    names: &[String],
    now: Timestamp,
    role: ReplicaRole,
) -> Result<Option<Stored>, RotationError> {
    let signs = stored.state.authorities[0].id == stored.state.serving.by;
    if !signs && role != (ReplicaRole::Leader { trusted: true }) {
        return Ok(None);
    }
    let mut all = names.to_vec();
    all.extend(stored.state.serving.names.iter().filter(|name| !names.contains(name)).cloned());
    all.truncate(NAMES_LEN_MAX.max(names.len()));
    let mut next = stored.clone();
    sign(&mut next, &all, now)?;
    Ok(Some(next))
}

/// Creates a new authority and certificate; authorities that are still needed remain trusted.
fn replace_all(stored: Option<&Stored>, names: &[String], now: Timestamp) -> Result<Stored, RotationError> {
    let authorities = stored.map(|stored| stored.state.authorities.clone()).unwrap_or_default();
    let serving = Serving { by: String::new(), not_after: now, names: Vec::new() };
    let mut state = State { authorities, serving };
    state.authorities.retain(|authority| authority.needed_until > now);
    let authority_key = add_authority(&mut state, now)?.key;
    let mut stored = Stored { state, pair: Pair { certificate: String::new(), key: String::new() }, authority_key };
    sign(&mut stored, names, now)?;
    Ok(stored)
}

/// Adds a new authority in front.
fn add_authority(state: &mut State, now: Timestamp) -> Result<issue::IssuedAuthority, RotationError> {
    // Two replicas may create authorities in the same millisecond, but only one of their bundles is stored.
    let id = now.as_millisecond().to_string();
    let not_after = now.checked_add(AUTHORITY_VALID)?;
    let made = issue::authority(&id, now, not_after)?;
    let needed_until = now.checked_add(CERTIFICATE_VALID)?;
    let certificate = made.certificate.clone();
    state.authorities.insert(0, Authority { id, certificate, trusted_since: None, not_after, needed_until });
    state.authorities.truncate(AUTHORITIES_LEN_MAX);
    Ok(made)
}

/// Signs a certificate with the newest authority.
fn sign(stored: &mut Stored, names: &[String], now: Timestamp) -> Result<(), RotationError> {
    let not_after = now.checked_add(CERTIFICATE_VALID)?;
    let newest = &mut stored.state.authorities[0];
    let (certificate, key) = issue::certificate(&newest.id, &stored.authority_key, names, now, not_after)?;
    newest.needed_until = not_after;
    newest.trusted_since = None;
    stored.state.serving = Serving { by: newest.id.clone(), not_after, names: names.to_vec() };
    stored.pair = Pair { certificate, key };
    Ok(())
}

#[cfg(test)]
mod tests;
