//! Managers of other versions of a kind: changes are compared in their version, and fields that they no longer apply
//! are removed in that version.
//!
//! Upstream: `update.go` of structured-merge-diff, and `versionconverter.go` of
//! `apimachinery/pkg/util/managedfields/internal`.

use std::{borrow::Cow, collections::BTreeSet, fmt::Debug};

use serde_json::Value;

use super::{
    Request,
    field_set::FieldSet,
    managed::{Managed, Manager},
    shape::Position,
    typed::{Comparison, compare},
    validate::{Duplicates, validate},
};
use crate::{registry::kind::StorageVersion, schema::Schema};

/// The versions of a kind, and conversion between them. The caller provides it: built-in kinds below, custom kinds in
/// `conversion`, where a webhook may be needed.
pub(crate) trait Versions: Debug {
    /// Converts an object to another version. Returns a message if the kind does not have the version, or if the
    /// conversion failed.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;

    /// Returns `true` if the versions may name or nest fields differently.
    fn differ(&self, left: &str, right: &str) -> bool;

    /// Returns `true` if the schema may have changed since managers came to own fields (a CRD was updated).
    fn may_have_changed(&self) -> bool;

    /// Returns the schema of the objects in a version.
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>>;
}

/// The form of kinds whose versions name all fields alike: no field manager needs a conversion.
pub(crate) const ONE_FORM: Option<&StorageVersion> = None;

/// The versions of a built-in kind, as in its field `storage`. Without one, its versions name all fields alike.
impl Versions for Option<&'static StorageVersion> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        Ok(self.map_or_else(|| object.clone(), |storage| (storage.convert)(api_version, object)))
    }

    fn differ(&self, left: &str, right: &str) -> bool {
        self.is_some_and(|storage| (storage.differ)(left, right))
    }

    fn may_have_changed(&self) -> bool {
        false
    }

    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        Schema::built_in(api_version, kind)
    }
}

impl<'a> Request<'a> {
    /// Returns an object in a version. The converted object is validated, since a webhook may return anything. Versions
    /// that name fields alike are not converted.
    pub(super) fn read<'o>(&self, object: &'o Value, api_version: &str) -> Result<Cow<'o, Value>, String> {
        match object.get("apiVersion").and_then(Value::as_str) {
            Some(own) if own != api_version && (self.differs(api_version) || self.differs(own)) => {
                let converted = self.versions.convert(object, api_version)?;
                let position = self.position_in(api_version, &converted);
                validate(position, &converted, None, Duplicates::Rejected)
                    .map_err(|why| format!("the object converted to {api_version}: {why}"))?;
                Ok(Cow::Owned(converted))
            }
            _ => Ok(Cow::Borrowed(object)),
        }
    }

    /// Returns the root position of an object in a version. Falls back to the request's position for versions that do
    /// not differ.
    pub(super) fn position_in(&self, api_version: &str, object: &Value) -> Position<'a> {
        if !self.differs(api_version) {
            return self.position();
        }
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        Position::root(self.versions.schema(api_version, kind))
    }
}

/// The differences between two states of an object, in the versions of all managers.
pub(super) struct Changes {
    /// The differences in the version of the request.
    here: VersionDifferences,
    /// The differences in other versions.
    elsewhere: Vec<VersionDifferences>,
}

/// The differences in one version.
struct VersionDifferences {
    api_version: String,
    /// Fields that were removed.
    removed: FieldSet,
    /// Fields that were added or modified.
    set: FieldSet,
}

impl VersionDifferences {
    /// Filters a comparison by the fields that the request may write.
    fn new(request: &Request<'_>, api_version: &str, compared: Comparison) -> Self {
        let left = |set| request.resets.without_reset_fields(set);
        let set = left(compared.modified).union(&left(compared.added));
        Self { api_version: api_version.to_owned(), removed: left(compared.removed), set }
    }
}

impl Changes {
    /// Compares two states in the versions of all managers but one. `manager` is the writer, whose version is the
    /// version of the request.
    ///
    /// # Errors
    /// Fails if an object cannot be converted to the version of a manager.
    pub(super) fn between(
        request: &Request<'_>,
        old: &Value,
        new: &Value,
        managed: &Managed,
        manager: Option<&Manager>,
    ) -> Result<Self, String> {
        let here = VersionDifferences::new(request, request.api_version, compare(request.position(), old, new));
        let others = managed.iter().filter(|(other, _)| Some(*other) != manager);
        let versions: BTreeSet<&str> = others.map(|(_, owned)| owned.api_version.as_str()).collect();
        let mut elsewhere = Vec::new();
        for version in versions.into_iter().filter(|version| request.differs(version)) {
            let read = |object, name: &str| {
                request.read(object, version).map_err(|why| format!("failed to convert {name} object: {why}"))
            };
            let (old, new) = (read(old, "old")?, read(new, "new")?);
            let compared = compare(request.position_in(version, &new), &old, &new);
            elsewhere.push(VersionDifferences::new(request, version, compared));
        }
        Ok(Self { here, elsewhere })
    }

    /// Returns the added and modified fields, in the version of the request.
    pub(super) fn changed_fields(&self) -> &FieldSet {
        &self.here.set
    }

    /// Returns the added and modified fields, in another version. A version that does not differ from the request's has
    /// the same set.
    pub(super) fn set_in(&self, api_version: &str) -> &FieldSet {
        let there = self.elsewhere.iter().find(|there| there.api_version == api_version);
        &there.unwrap_or(&self.here).set
    }

    /// Removes the changed fields from all managers except `manager`, or from all managers if it is `None`. Removed
    /// fields are taken as well: an update that removes a field ends its ownership.
    pub(super) fn take_from_others(&self, managed: &mut Managed, manager: Option<&Manager>) {
        let is_elsewhere = |version: &str| self.elsewhere.iter().any(|there| there.api_version == version);
        for fields in [&self.here.set, &self.here.removed] {
            managed.take_from_others(fields, manager, |version| !is_elsewhere(version));
        }
        for there in &self.elsewhere {
            for fields in [&there.set, &there.removed] {
                managed.take_from_others(fields, manager, |version| version == there.api_version);
            }
        }
    }
}
