//! The options of lists, watches and deletes of collections, validated in the order of kube-apiserver.

use crate::{field_errors::Errors, request::RequestInfo, selector::Selector, status::StatusError};

/// The option that defines how `resourceVersion` is interpreted.
pub(in crate::verbs) const MATCH: &str = "resourceVersionMatch";

/// Options that are valid by themselves; [`Self::selector`] checks them against the kind.
pub(in crate::verbs) struct ListOptions {
    /// The number of objects of a page; 0 for all.
    pub(super) limit: usize,
    /// `timeoutSeconds`; 0 if the client names no timeout. Only watches use it.
    pub(in crate::verbs) seconds: i64,
    /// Label and field selector, before their fields are checked.
    selector: Selector,
}

impl ListOptions {
    /// Reads the options: numbers first, then selectors (`Convert_url_Values_To_v1_ListOptions`, then
    /// `Convert_v1_ListOptions_To_internalversion_ListOptions` of apimachinery). A number that does not parse is 400.
    /// Options that only one of the verbs has are left to that verb.
    ///
    /// # Errors
    /// Fails with the first option that cannot be parsed.
    pub(in crate::verbs) fn read(info: &RequestInfo) -> Result<Self, StatusError> {
        let seconds = info.params.number("timeoutSeconds")?.unwrap_or(0);
        let limit = usize::try_from(info.params.number("limit")?.unwrap_or(0)).unwrap_or(0);
        let selector = Selector::read(info.params.text("labelSelector"), info.params.text("fieldSelector"))?;
        Ok(Self { limit, seconds, selector })
    }

    /// Validates how the options of a list combine (`ValidateListOptions` of apimachinery). The group of the error is
    /// `meta.k8s.io`, its kind `ListOptions`.
    ///
    /// # Errors
    /// Fails with all field errors.
    pub(in crate::verbs) fn check_versions(info: &RequestInfo) -> Result<(), StatusError> {
        let (version, matching) = (info.params.text("resourceVersion"), info.params.text(MATCH));
        let continues = !info.params.text("continue").is_empty();
        let mut errors = Errors::default();
        if !matching.is_empty() {
            if version.is_empty() || continues {
                errors.forbidden(MATCH, "may only be set with resourceVersion and without continue");
            }
            if !["Exact", "NotOlderThan"].contains(&matching) {
                errors.unsupported(MATCH, &matching.into(), &["Exact", "NotOlderThan"]);
            }
            if matching == "Exact" && version == "0" {
                errors.forbidden(MATCH, "must not be Exact if resourceVersion is 0");
            }
        }
        // `sendInitialEvents` is an option of watches.
        if info.params.is_present("sendInitialEvents") {
            errors.forbidden("sendInitialEvents", "may only be set for a watch");
        }
        StatusError::unless_valid("meta.k8s.io", "ListOptions", "", &errors)
    }

    /// Returns the selector. A name in the path selects that object. Built-in kinds list their fields in
    /// `selectable_fields`; `metadata.name` is always supported.
    ///
    /// # Errors
    /// Fails if the kind does not support a field of the selector, if the shard selector is invalid, or if the selector
    /// excludes the name in the path.
    pub(in crate::verbs) fn selector(&self, info: &RequestInfo) -> Result<Selector, StatusError> {
        let custom: Vec<&str>;
        let selectable = match &info.resource.custom {
            Some(custom_kind) => {
                let fields = custom_kind.version["selectableFields"].as_array();
                let paths = fields.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
                // CRDs do not list the field that every kind supports besides the name.
                let always = ["metadata.namespace"];
                custom = always.into_iter().chain(paths.map(|path| path.trim_start_matches('.'))).collect();
                custom.as_slice()
            }
            None => info.resource.kind.requests.selectable_fields,
        };
        let selector = self.selector.clone().for_fields(selectable, info.resource.kind.requests.selected_value)?;
        let selector = selector.with_shard_ranges(info.params.text("shardSelector"))?;
        if info.name.is_empty() || selector.name() == Some(&info.name) {
            return Ok(selector);
        }
        selector
            .with_name(&info.name)
            .ok_or_else(|| StatusError::bad_request("fieldSelector: metadata.name must be the name in the path"))
    }
}
