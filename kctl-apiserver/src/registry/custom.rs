//! The part of a `CustomResourceDefinition` that the requests for its resource need.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::{
    crd::{self, Rules},
    schema::Schema,
};

/// The part of a CRD that one version of its resource needs.
pub(crate) struct Custom {
    /// The entry in `spec.versions`.
    pub(crate) version: Value,
    /// Its `openAPIV3Schema`; null if it has none.
    pub(crate) schema: Value,
    /// All of `spec.versions`, shared between the resources of the CRD.
    pub(crate) versions: Arc<[Value]>,
    /// The `Warning` header of each response, if the version is deprecated.
    pub(crate) warning: Option<String>,
    /// `spec.conversion`: the strategy and the webhook that convert between versions.
    pub(crate) conversion: Value,
    /// The name of the version in which objects are stored.
    pub(crate) storage: String,
    /// `true` while the objects of the CRD are being deleted. Discovery then no longer lists the verbs that create or
    /// change objects.
    pub(super) ends: bool,
    /// Cache for the compiled CEL rules.
    pub(super) rules: OnceLock<Rules>,
}

impl Custom {
    /// Returns the schema of another version, even if it is not served.
    pub(crate) fn schema_of(&self, version: &str) -> Option<Schema<'_>> {
        let version = self.versions.iter().find(|declared| declared["name"] == version)?;
        let schema = &version["schema"]["openAPIV3Schema"];
        schema.is_object().then(|| Schema::structural(schema))
    }

    /// Returns the version of an `apiVersion`, without its group.
    pub(crate) fn version_of(api_version: &str) -> &str {
        api_version.rsplit('/').next().unwrap_or_default()
    }

    /// Prunes and defaults an object that was read from the store. It uses the schema of the object's stored version,
    /// which may have changed since the object was written.
    pub(crate) fn read(&self, object: &mut Value) {
        let version = Self::version_of(object["apiVersion"].as_str().unwrap_or_default());
        if let Some(schema) = self.schema_of(version) {
            crd::prune(schema, object);
            crd::default(schema, object);
        }
    }

    /// Returns the CEL rules of the schema, compiled on first use.
    pub(crate) fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| Rules::compile(Schema::structural(&self.schema)))
    }
}
