//! Lists of a source: the requests of the reflector, and lists that are concurrent with its watch.

use std::{sync::Arc, time::Duration};

use kctl_apimachinery::url;
use kube::client::Body;

use super::Source;
use crate::{
    object::Stored,
    source::{
        METADATA_LIST, PAGE_LEN,
        check::Arrival,
        filter::Filter,
        items::ListMeta,
        pages::each_item,
        reflector::{Input, Reflector, Request, wants_pages},
        unreadable::ListNumber,
    },
    store::NamespaceScope,
    transport::{ApiError, Operation},
};

/// The state at the beginning of a list, for its later pages.
#[derive(Default)]
pub(super) struct ListBegin {
    /// The number of slots that were gained before the request.
    gained: u64,
    list: ListNumber,
}

/// Maximum number of lists in a row. A list during which a slot is gained is requested again.
const GAINS_MAX: usize = 3;

impl Source {
    /// Performs a list, a page or a probe, and returns the wait before the next request.
    ///
    /// If a slot was gained since the beginning of the list, it is requested again: a whole list at once, and one in pages
    /// after the backoff. During the backoff, nothing is watched.
    pub(super) async fn list(
        &self,
        reflector: &mut Reflector,
        scope: &NamespaceScope,
        begun: &mut ListBegin,
    ) -> Option<Duration> {
        let request = reflector.request().clone();
        let n_tries = if matches!(request, Request::Whole { .. }) { GAINS_MAX } else { 1 };
        let mut input = Input::Failed(self.slot_gained());
        for _try in 0..n_tries {
            if !matches!(request, Request::List { token: Some(_), .. }) {
                begun.gained = self.n_gained();
                self.record_selection(scope);
            }
            let response = self.request_list(scope, &request, Arrival::Listed, &mut begun.list).await;
            let is_complete = self.n_gained() == begun.gained;
            if is_complete || request == Request::Probe || !matches!(response, Input::Page { .. }) {
                input = response;
                break;
            }
        }
        self.perform(reflector, input).await
    }

    /// Requests a list or one page of it.
    ///
    /// All failures come back as an [`Input`], since the reflector decides about them. Items are in their final form.
    ///
    /// `list` is the number of the list that its first page sets. Objects that were unreadable are forgotten only at
    /// its last page, because a list that fails says nothing about them.
    pub(in crate::source) async fn request_list(
        &self,
        scope: &NamespaceScope,
        request: &Request,
        arrival: Arrival,
        list: &mut ListNumber,
    ) -> Input {
        if matches!(request, Request::Whole { .. } | Request::List { token: None, .. }) {
            *list = self.unreadable.begin_list();
        }
        // If no object is selected, a list with one item is enough to get the version. If a slot is gained during the
        // request, the list is requested again.
        let is_empty = matches!(request, Request::Whole { .. }) && self.filter().is_some_and(Filter::selects_nothing);
        let mut query = Vec::new();
        let (version, token) = match request {
            Request::List { version, token } => {
                query.push(format!("limit={PAGE_LEN}"));
                (version, token)
            }
            Request::Whole { version } => {
                query.extend(is_empty.then(|| "limit=1".to_owned()));
                (version, &None)
            }
            Request::Probe => {
                query.push("limit=1".into());
                (&None, &None)
            }
            Request::Stream | Request::Watch { .. } => (&None, &None),
        };
        query.extend(token.as_ref().map(|token| format!("continue={}", url::escape(token))));
        if let Some(version) = version {
            query.push(format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", url::escape(version)));
        }
        let operation = self.config.operation("list");
        let query = query.join("&");
        let input = match self.send_list(&operation, scope, &query, self.accepts(METADATA_LIST)).await {
            Ok(body) => match self.read_list(&operation, body, arrival).await {
                Ok(Input::Page { objects, version, .. }) if is_empty => Input::Page { objects, version, token: None },
                input => input.unwrap_or_else(Input::ListInterrupted),
            },
            Err(error) => Input::Failed(error),
        };
        let is_last =
            |input: &Input| matches!(input, Input::Page { token, .. } if token.as_deref().is_none_or(str::is_empty));
        if *request != Request::Probe && is_last(&input) {
            self.unreadable.end_list(scope, *list);
        }
        input
    }

    /// Reads the items of a list as they arrive.
    ///
    /// # Errors
    /// The response breaks off or is not a list. Items that cannot be decoded are not an error: they are reported, and
    /// their last good state is part of the result.
    pub(in crate::source) async fn read_list(
        &self,
        operation: &Operation,
        body: Body,
        arrival: Arrival,
    ) -> Result<Input, ApiError> {
        let (mut objects, mut deferred) = (Vec::new(), Vec::new());
        let on_data = || self.condition.record_response();
        let take = |item: &str| {
            if self.not_selected(item).is_none() {
                objects.extend(match arrival {
                    Arrival::ListedDuringWatch => self.accept_or_defer(item, &mut deferred),
                    Arrival::Alone | Arrival::Listed => self.accept_or_last(item, arrival),
                });
            }
            Ok(())
        };
        let ListMeta { resource_version, token, shard_info } = each_item(operation, body, on_data, take).await?;
        self.report_deferred(deferred, &resource_version);
        self.record_selected(shard_info.is_some());
        Ok(Input::Page { objects, version: resource_version, token })
    }

    /// Lists the newest state concurrently with the watch, whole or in pages, and returns it with its version.
    ///
    /// It falls back to pages for this one read if the whole list is rejected or breaks off. All pages of a list show the same
    /// version.
    ///
    /// # Errors
    /// A request fails, or slots are gained during each of [`GAINS_MAX`] lists. Nothing else is retried here.
    pub(in crate::source) async fn state(
        &self,
        scope: &NamespaceScope,
    ) -> Result<(Vec<Arc<Stored>>, String), ApiError> {
        for _try in 0..GAINS_MAX {
            let gained = self.n_gained();
            let (mut objects, version) = self.partial_state(scope).await?;
            if self.n_gained() == gained {
                self.retain_selected(&mut objects);
                return Ok((objects, version));
            }
        }
        Err(self.slot_gained())
    }

    /// Does the same, and keeps a list during which a slot was gained. It lacks some objects of that slot.
    pub(in crate::source) async fn partial_state(
        &self,
        scope: &NamespaceScope,
    ) -> Result<(Vec<Arc<Stored>>, String), ApiError> {
        let mut request = Request::Whole { version: None };
        let (mut state, mut list) = (Vec::new(), ListNumber::default());
        loop {
            match self.request_list(scope, &request, Arrival::ListedDuringWatch, &mut list).await {
                Input::Page { objects, version, token } => {
                    state.extend(objects);
                    match token.filter(|token| !token.is_empty()) {
                        Some(token) => request = Request::List { version: None, token: Some(token) },
                        None => return Ok((state, version)),
                    }
                }
                Input::Failed(error) if matches!(request, Request::Whole { .. }) && wants_pages(&error) => {
                    request = Request::List { version: None, token: None };
                }
                // A proxy that cuts each whole list would do so at each try.
                Input::ListInterrupted(_) if matches!(request, Request::Whole { .. }) => {
                    request = Request::List { version: None, token: None };
                }
                Input::Failed(error) | Input::ListInterrupted(error) => return Err(error),
                _ => return Ok((state, String::new())),
            }
        }
    }
}
