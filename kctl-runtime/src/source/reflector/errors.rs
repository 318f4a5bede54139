//! Chooses the next request after a request that failed.

use std::time::Duration;

use super::{BROKEN_LISTS, Effect, Reflector, Request};
use crate::{source::Presence, store::Delta, transport::ApiError};

/// First and longest wait for a kind that the server does not serve. After its CRD was installed, the kind is found
/// within that time.
const ABSENT_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// Number of 404s in a row, about twelve seconds, after which the CRD counts as deleted, and with it all objects. A
/// starting API server also answers 404 before it has read its CRDs.
const ABSENT_RESPONSES: u32 = 5;
/// Number of 404s in a row, a second apart, after which an optional kind counts as not installed if it was never
/// listed. The number is small because users lose no objects that they knew. A starting kube-apiserver 1.36 does not
/// answer 404 for a kind that exists (429 and 503, in three restarts).
const ABSENT_RESPONSES_AT_START: u32 = 2;

impl Reflector {
    /// Chooses the next request and the wait after an error.
    ///
    /// | Request | Error | Next |
    /// |---|---|---|
    /// | any | 404 | list, with the waits of a missing kind |
    /// | whole list | 400, 405, 413, 422 | pages, at once |
    /// | list, page | 410, or 504 `Too large resource version` | newest state; at once unless that was requested, or pages expired twice |
    /// | first page from a version | 400, 422 | newest state after the wait |
    /// | list, page | other | list again after the wait |
    /// | watch | 410 | list of at least the last version, at once; after the wait if the last watch expired too |
    /// | watch | no response | probe after the wait |
    /// | watch | 429, unreadable line | same watch after the wait |
    /// | watch | other | list after the wait |
    /// | probe | other | probe again after the wait |
    /// | stream | 400, 405, 422 | list, at once |
    /// | stream | other | stream again after the wait |
    ///
    /// A `Retry-After` of the response prolongs the wait up to a minute, and never shortens it.
    pub(super) fn handle_error(&mut self, error: &ApiError) -> Vec<Effect> {
        if error.is_not_found() {
            return self.kind_not_served();
        }
        match &self.request {
            // The server does not support streams: list from now on.
            Request::Stream if matches!(error.code(), Some(400 | 405 | 422)) => {
                self.fall_back();
                vec![Effect::Next]
            }
            Request::Stream => {
                self.objects.clear();
                self.wait_after(error)
            }
            Request::Whole { version } if wants_pages(error) => {
                let version = version.clone();
                self.pages = true;
                self.relist(version);
                vec![Effect::Next]
            }
            Request::Whole { .. } | Request::List { .. } if error.is_expired() || is_ahead(error) => self.list_newest(),
            // The server cannot read the version: another implementation of the API has replaced the one that made it.
            Request::List { version: Some(_), .. } if matches!(error.code(), Some(400 | 422)) => {
                self.relist(None);
                self.wait_after(error)
            }
            Request::Whole { .. } | Request::List { .. } => {
                // Pages of different lists have different versions, so the list starts again.
                self.relist(self.last.clone());
                self.wait_after(error)
            }
            Request::Watch { .. } if error.is_expired() => {
                self.relist(self.last.clone());
                // The list after the last 410 was of no use, and the next one may be as well.
                self.expired = self.expired.saturating_add(1);
                if self.expired > 1 { self.wait_after(error) } else { vec![Effect::Next] }
            }
            Request::Watch { .. } if matches!(error, ApiError::NoResponse { .. }) => {
                // The server may have been restored from a backup. A watch from a version in its future would receive
                // no events.
                self.request = Request::Probe;
                self.wait_after(error)
            }
            Request::Watch { .. } if error.code() == Some(429) || error.code().is_none() => self.wait_after(error),
            Request::Probe => self.wait_after(error),
            Request::Watch { .. } => {
                self.relist(self.last.clone());
                self.wait_after(error)
            }
        }
    }

    /// Returns the next wait of the backoff, or the `Retry-After` of the response if that is longer. The second is at
    /// most a minute.
    fn wait_after(&mut self, error: &ApiError) -> Vec<Effect> {
        let retry_after = error.followed_retry_after().unwrap_or_default();
        vec![Effect::Wait(self.backoff.next_wait().max(retry_after))]
    }

    /// Requests the newest state, because the page or version has expired, or this server has not reached it.
    ///
    /// The newest state is always available. If just that was requested, a wait comes first. So it does if the pages of the
    /// last list expired as well: a server that forgets versions more quickly than it is read would be listed in a hot
    /// loop.
    fn list_newest(&mut self) -> Vec<Effect> {
        let was_newest =
            matches!(self.request, Request::Whole { version: None } | Request::List { version: None, token: None });
        let is_later_page = matches!(self.request, Request::List { token: Some(_), .. });
        self.expired_pages = self.expired_pages.saturating_add(is_later_page.into());
        self.relist(None);
        let waits = was_newest || self.expired_pages > 1;
        vec![if waits { Effect::Wait(self.backoff.next_wait()) } else { Effect::Next }]
    }

    /// Handles a 404: the server does not serve the kind.
    ///
    /// The first 404 makes the store incomplete, so that no controller acts on objects that may be gone. Their deletion
    /// is reported only when it is certain. Deletions cannot be taken back: reconcilers would create all owned objects
    /// again.
    pub(super) fn kind_not_served(&mut self) -> Vec<Effect> {
        self.relist(None);
        self.absent = self.absent.saturating_add(1);
        let mut effects = Vec::new();
        if self.last.is_some() {
            // The first 404 makes the cache incomplete, which pauses its controllers. After `ABSENT_RESPONSES` of them,
            // its objects are removed.
            effects.extend((self.absent == 1).then(|| Effect::Emit(Delta::Incomplete(self.scope.clone()))));
        }
        let is_certain = match (self.last.is_some(), self.presence) {
            (true, _) => self.absent == ABSENT_RESPONSES,
            (false, Presence::Optional) => self.absent == ABSENT_RESPONSES_AT_START,
            (false, Presence::Required) => false,
        };
        if is_certain {
            effects.push(Effect::Emit(match self.presence {
                Presence::Required => Delta::Clear(self.scope.clone()),
                Presence::Optional => Delta::Absent(self.scope.clone()),
            }));
        }
        let (first, longest) = ABSENT_WAIT;
        effects.push(Effect::Wait(first.saturating_mul(1 << (self.absent - 1).min(8)).min(longest)));
        effects
    }

    /// Handles a list that broke off.
    ///
    /// Proxies and load balancers limit the size or the time of a response. A whole list that breaks off twice in a row
    /// is therefore requested in pages, from then on.
    pub(super) fn list_interrupted(&mut self, error: &ApiError) -> Vec<Effect> {
        if matches!(self.request, Request::Whole { .. }) {
            self.broken += 1;
            self.pages |= self.broken >= BROKEN_LISTS;
        }
        self.handle_error(error)
    }
}

/// Returns `true` if a whole list was rejected as such, by the server or by a proxy, and not only for now.
pub(in crate::source) fn wants_pages(error: &ApiError) -> bool {
    matches!(error.code(), Some(400 | 405 | 413 | 422))
}

/// Returns `true` if the server has not reached the requested version: it was restored from a backup, or is late
/// (client-go, `reflector.go`, `isTooLargeResourceVersionError`).
fn is_ahead(error: &ApiError) -> bool {
    error.code() == Some(504) && error.has_cause("ResourceVersionTooLarge", "")
}
