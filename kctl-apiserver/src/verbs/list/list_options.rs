//! What lists, watches and deletes of many are asked for: reads the query in the order in which the real server judges it.

use crate::{
    request::RequestInfo,
    selector::Selector,
    status::{FieldError, StatusError},
};

pub(in crate::verbs) const MATCH: &str = "resourceVersionMatch";

/// Options that can be read, of which nobody knows yet whether they fit the kind.
pub(in crate::verbs) struct ListOptions {
    /// Zero for all.
    pub(super) limit: usize,
    /// Zero where the client does not say how long it waits.
    pub(in crate::verbs) seconds: i64,
    selector: Selector,
}

impl ListOptions {
    /// Reads options: numbers first, then selectors (`Convert_url_Values_To_v1_ListOptions` and then
    /// `Convert_v1_ListOptions_To_internalversion_ListOptions` of apimachinery).
    ///
    /// # Errors
    /// The first option that cannot be read.
    pub(in crate::verbs) fn read(info: &RequestInfo) -> Result<Self, StatusError> {
        let seconds = info.params.number("timeoutSeconds")?.unwrap_or(0);
        let limit = usize::try_from(info.params.number("limit")?.unwrap_or(0)).unwrap_or(0);
        let selector = Selector::read(info.params.text("labelSelector"), info.params.text("fieldSelector"))?;
        Ok(Self { limit, seconds, selector })
    }

    /// Judges what a list, or a delete of many, may say of versions (`ValidateListOptions` of apimachinery).
    ///
    /// # Errors
    /// All that is wrong.
    pub(in crate::verbs) fn check_versions(info: &RequestInfo) -> Result<(), StatusError> {
        let (version, matching) = (info.params.text("resourceVersion"), info.params.text(MATCH));
        let continues = !info.params.text("continue").is_empty();
        let mut errors = Vec::new();
        if !matching.is_empty() {
            let forbidden = [
                (version.is_empty(), "resourceVersionMatch is forbidden unless resourceVersion is provided"),
                (continues, "resourceVersionMatch is forbidden when continue is provided"),
            ];
            errors
                .extend(forbidden.iter().filter(|(is_so, _)| *is_so).map(|(_, why)| FieldError::forbidden(MATCH, why)));
            if !["Exact", "NotOlderThan"].contains(&matching) {
                errors.push(unsupported_match(matching, r#""Exact", "NotOlderThan", """#));
            }
            if matching == "Exact" && version == "0" {
                let why = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
                errors.push(FieldError::forbidden(MATCH, why));
            }
        }
        // Only watches stream what is there.
        if info.params.given("sendInitialEvents") {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
    }

    /// The selector, once the kind knows its fields; a name in the path selects that object.
    ///
    /// # Errors
    /// A field that objects of the kind are not selected by, or that is not the name in the path.
    pub(in crate::verbs) fn selector(&self, info: &RequestInfo) -> Result<Selector, StatusError> {
        let custom: Vec<&str>;
        let known = match &info.resource.custom {
            Some(custom_kind) => {
                let fields = custom_kind.version["selectableFields"].as_array();
                let paths = fields.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
                // These two are known of every kind; that a custom kind names them tells the words of its refusals.
                let always = ["metadata.name", "metadata.namespace"];
                custom = always.into_iter().chain(paths.map(|path| path.trim_start_matches('.'))).collect();
                custom.as_slice()
            }
            None => info.resource.rules.selectable_fields,
        };
        self.selector.check(known)?;
        if info.name.is_empty() || self.selector.name() == Some(&info.name) {
            return Ok(self.selector.clone());
        }
        self.selector
            .clone()
            .named(&info.name)
            .ok_or_else(|| StatusError::bad_request("fieldSelector metadata.name doesn't match requested name"))
    }
}

/// How a version is meant, in a word that is not known.
pub(in crate::verbs) fn unsupported_match(found: &str, supported: &str) -> FieldError {
    FieldError {
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {found:?}: supported values: {supported}"),
        field: MATCH.into(),
    }
}
