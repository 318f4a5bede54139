//! The options that decide where a watch starts.

use crate::{field_errors::Errors, request::RequestInfo, status::StatusError, verbs::list};

/// The value of `resourceVersionMatch` that `sendInitialEvents` requires.
const NOT_OLDER: &str = "NotOlderThan";

/// The options that decide where a watch starts.
pub(super) struct WatchOptions<'a> {
    /// `resourceVersion`.
    pub(super) version: &'a str,
    /// `true` for the deprecated path `/watch/…`. Its options are validated like list options, and get no defaults
    /// (`ListResource` of `k8s.io/apiserver/pkg/endpoints/handlers/get.go`).
    by_path: bool,
    /// `sendInitialEvents`, if the client set it.
    pub(super) initial: Option<bool>,
    /// `resourceVersionMatch`.
    matching: &'a str,
}

impl<'a> WatchOptions<'a> {
    /// Reads the options. A watch without a version, or with 0, gets the initial state, like a watch with
    /// `sendInitialEvents` (`SetListOptionsDefaults` of apimachinery).
    pub(super) fn from_request(info: &'a RequestInfo) -> Self {
        let (version, matching) = (info.params.text("resourceVersion"), info.params.text("resourceVersionMatch"));
        let by_path = !info.params.flag("watch");
        let initial = info.params.is_present("sendInitialEvents").then(|| info.params.flag("sendInitialEvents"));
        if !by_path && initial.is_none() && matching.is_empty() && ["", "0"].contains(&version) {
            return Self { version, by_path, initial: Some(true), matching: NOT_OLDER };
        }
        Self { version, by_path, initial, matching }
    }

    /// Returns `true` if the watch sends the initial state first.
    pub(super) fn begins_with_state(&self) -> bool {
        self.initial == Some(true) || (self.by_path && ["", "0"].contains(&self.version))
    }

    /// Validates the options (`validateWatchOptions` of apimachinery). The deprecated path has the rules of lists.
    pub(super) fn check(&self, info: &RequestInfo) -> Result<(), StatusError> {
        if self.by_path {
            return list::ListOptions::check_versions(info);
        }
        let continues = !info.params.text("continue").is_empty();
        let (streams, matching) = (self.initial.is_some(), self.matching);
        let mut errors = Errors::default();
        let is_given = !matching.is_empty();
        if (streams && matching != NOT_OLDER) || (is_given && (continues || !streams)) {
            let why = "must be NotOlderThan with sendInitialEvents, and not be set without it or with continue";
            errors.forbidden(list::MATCH, why);
        }
        if is_given && matching != NOT_OLDER {
            errors.unsupported(list::MATCH, &matching.into(), &[NOT_OLDER]);
        }
        StatusError::unless_valid("meta.k8s.io", "ListOptions", "", &errors)
    }

    /// Parses `resourceVersion`; 0 if it is empty. Versions are numbers of 64 bits; the error is the same as for a get.
    pub(super) fn revision(&self) -> Result<u64, StatusError> {
        match self.version {
            "" => Ok(0),
            text => text.parse().map_err(|_| list::malformed_version_error(text)),
        }
    }
}
