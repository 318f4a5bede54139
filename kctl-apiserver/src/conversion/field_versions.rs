//! Converts objects for `managedFields`: each entry is in its own version of the kind.
//!
//! Server-side apply compares an object with the fields that a manager owned in another version. To
//! do so it converts the object to that version, which may need the webhook of the CRD.

use std::fmt::{self, Debug, Formatter};

use serde_json::Value;

use super::{convert, in_version, uses_webhook};
use crate::{apply::Versions, registry::Custom, request::RequestInfo, schema::Schema, state::State};

/// The versions of the kind of a request, in which field managers own fields.
pub(crate) struct FieldVersions<'a> {
    /// The CRDs and the transport of webhooks.
    pub(crate) state: &'a State,
    /// The request, whose round has the replies of webhooks.
    pub(crate) info: &'a RequestInfo,
}

impl Debug for FieldVersions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldVersions").field(&self.info.resource.id).finish()
    }
}

impl Versions for FieldVersions<'_> {
    /// Fails while the conversion webhook has not replied; the round is then waiting.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        if self.info.resource.custom.is_none() {
            return self.info.resource.kind.storage.convert(object, api_version);
        }
        let to = in_version(&self.state.store, &self.info.resource, Custom::version_of(api_version))
            .filter(|to| to.api_version() == api_version)
            .ok_or_else(|| format!("request to convert CR to an invalid group/version: {api_version}"))?;
        if uses_webhook(&to) && !is_bare(object) {
            return convert(self.state, self.info, &to, object).map_err(|error| error.message);
        }
        // Fields that the version does not have are kept here; reads drop them.
        let mut renamed = object.clone();
        renamed["apiVersion"] = api_version.into();
        Ok(renamed)
    }

    fn differ(&self, left: &str, right: &str) -> bool {
        let resource = &self.info.resource;
        if resource.custom.is_some() { left != right } else { resource.kind.storage.differ(left, right) }
    }

    fn may_have_changed(&self) -> bool {
        self.info.resource.custom.is_some()
    }

    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        match &self.info.resource.custom {
            Some(custom) => custom.schema_of(Custom::version_of(api_version)),
            None => self.info.resource.kind.storage.schema(api_version, kind),
        }
    }
}

/// Returns `true` if an object has no fields but its type. Webhooks do not convert such objects
/// (`isEmptyUnstructuredObject` upstream).
fn is_bare(object: &Value) -> bool {
    object.as_object().is_some_and(|fields| fields.keys().all(|name| name == "apiVersion" || name == "kind"))
}
