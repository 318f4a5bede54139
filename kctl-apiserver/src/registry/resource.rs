//! One version of a served resource.

use std::{borrow::Cow, sync::OnceLock};

use super::{ApiResource, Custom, Kind};
use crate::{
    schema::{self, Schema},
    status::GroupResource,
};

/// One version of a resource, with its kind and schema.
pub(crate) struct Resource {
    /// The group and the plural name.
    pub(crate) id: GroupResource,
    /// The version of this value. Each served version of a resource has such a value.
    pub(crate) version: String,
    /// The entry in discovery.
    pub(crate) listed: ApiResource,
    /// The entries of the subresources in discovery; their names include the resource: `deployments/scale`.
    pub(crate) subresources: Vec<ApiResource>,
    /// The kind of a list, such as `PodList`.
    pub(crate) list_kind: String,
    /// The kind, which has the rules of its objects; `Kind::CUSTOM` for all custom resources.
    pub(crate) kind: &'static Kind,
    /// The part of the CRD; `None` for a built-in kind.
    pub(crate) custom: Option<Custom>,
    /// Cache for the schema of a built-in kind, which a request reads several times.
    pub(super) built_in: OnceLock<Option<Schema<'static>>>,
}

impl Resource {
    /// Returns the `apiVersion` of objects: `GROUP/VERSION`, or `VERSION` in the core group.
    pub(crate) fn api_version(&self) -> String {
        schema::api_version(&self.id.group, &self.version)
    }

    /// Returns the kind as objects name it, such as `Pod`.
    pub(crate) fn kind_name(&self) -> &str {
        &self.listed.kind
    }

    /// Returns `true` if the resource, or the subresource if it is not empty, supports the verb.
    pub(crate) fn allows(&self, subresource: &str, verb: &str) -> bool {
        let listed = if subresource.is_empty() { Some(&self.listed) } else { self.subresource(subresource) };
        listed.is_some_and(|listed| listed.verbs.iter().any(|allowed| allowed == verb))
    }

    /// Returns the entry in discovery. While a CRD is being deleted, it lists no verbs that create or change objects.
    pub(super) fn discovery_entry(&self) -> Cow<'_, ApiResource> {
        if self.custom.as_ref().is_none_or(|custom| !custom.ends) {
            return Cow::Borrowed(&self.listed);
        }
        let mut listed = self.listed.clone();
        listed.verbs.retain(|verb| !["create", "patch", "update"].contains(&verb.as_str()));
        Cow::Owned(listed)
    }

    /// Returns the discovery entry of a subresource by its name without the resource, such as `scale`.
    pub(crate) fn subresource(&self, name: &str) -> Option<&ApiResource> {
        self.subresources
            .iter()
            .find(|sub| sub.name.split_once('/').is_some_and(|(_, subresource)| subresource == name))
    }

    /// Returns `true` if the resource has the subresource `status`.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns the custom resource in another of its versions, even if that is not served; `None` for built-in kinds.
    /// Conversion needs it: objects may be stored in a version that is not served. It has no warning.
    pub(crate) fn in_version(&self, name: &str) -> Option<Self> {
        let custom = self.custom.as_ref()?;
        let version = custom.versions.iter().find(|version| version["name"] == name)?;
        Some(Self {
            id: self.id.clone(),
            version: name.to_owned(),
            listed: self.listed.clone(),
            subresources: self.subresources.clone(),
            list_kind: self.list_kind.clone(),
            kind: self.kind,
            custom: Some(Custom {
                version: version.clone(),
                schema: version["schema"]["openAPIV3Schema"].clone(),
                versions: custom.versions.clone(),
                warning: None,
                conversion: custom.conversion.clone(),
                storage: custom.storage.clone(),
                ends: custom.ends,
                rules: OnceLock::new(),
            }),
            built_in: OnceLock::new(),
        })
    }

    /// Returns the schema of this version; `None` if the version has no schema.
    pub(crate) fn schema(&self) -> Option<Schema<'_>> {
        match &self.custom {
            Some(custom) => custom.schema.is_object().then(|| Schema::structural(&custom.schema)),
            None => *self.built_in.get_or_init(|| Schema::built_in(&self.api_version(), self.kind_name())),
        }
    }
}
