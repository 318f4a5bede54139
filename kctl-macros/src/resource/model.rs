//! A type under `#[resource]` or `#[schema]` as plain data: `check` builds it from the user's tokens, `emit` turns it into code.

use proc_macro2::TokenTree;
use syn::{DeriveInput, Error, Field, Ident};

use super::{marker::Markers, none_policy::NonePolicy};
use crate::crate_path::CratePath;

/// A struct or an enum with everything that the attribute adds to it.
///
/// After a mistake the model is complete, too: `errors` holds the mistakes, and wrong options are replaced by valid ones or
/// left out. So the kind exists, and rustc reports no second error about the same mistake.
pub(super) struct Model {
    /// The user's item without its `#[kctl(…)]` attributes. Its derives are as the user wrote them: `emit` removes those that
    /// it adds with other paths.
    pub(super) item: DeriveInput,
    /// The path of kctl.
    pub(super) krate: CratePath,
    /// `None` for `#[schema]`, which makes no kind.
    pub(super) resource: Option<Resource>,
    /// The derives to add, in the order of emission.
    pub(super) derives: Vec<Derive>,
    /// The serde option that spells fields in camel case; `None` if the user wrote it.
    pub(super) rename: Option<Rename>,
    /// The fields with `#[serde(flatten)]`. `None` without one.
    pub(super) flattened: Option<FlattenedParts>,
    /// `#[kctl(…)]` on the item itself.
    pub(super) on_type: Annotations,
    /// One entry for each field of a struct, or of all variants of an enum, in the order of the source.
    pub(super) on_fields: Vec<Annotations>,
    /// One entry for each variant of an enum.
    pub(super) on_variants: Vec<Annotations>,
    /// Types of fields that lack `#[schema]`: they get empty implementations, because K0090 has reported them.
    pub(super) stubs: Vec<Stub>,
    /// The mistakes, to be emitted in addition to the item.
    pub(super) errors: Option<Error>,
}

/// The options of `#[resource(…)]`.
pub(super) struct Resource {
    /// The options that kube's derive reads. Wrong ones are replaced or left out.
    pub(super) options: Vec<KubeOption>,
    /// Markers of the object as a whole: `rule(…)`, `conversion(…)` and others that kube's derive does not have.
    pub(super) root: Markers,
    /// The source of the schema in the CRD.
    pub(super) schema: SchemaSource,
}

/// The source of the schema in the CRD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaSource {
    /// schemars derives it from the struct. The transform `Structure` then makes it structural, as API servers require.
    Derived,
    /// `schema = "manual"` or `schema = "disabled"`: the user provides it, or the CRD has none.
    User,
}

/// One option of kube's derive.
pub(super) enum KubeOption {
    /// `plural = "webs"`, `namespaced` or `scale(…)`, as the user wrote it. The value has the `=` or the parentheses.
    Written { name: Ident, value: Vec<TokenTree> },
    /// `name = "value"`, in place of a missing or a wrong option.
    Text { name: Ident, value: String },
    /// The flag, in place of `scope = "Namespaced"`.
    Namespaced,
}

/// A trait that the attribute derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Derive {
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    JsonSchema,
    /// kube's derive, which makes the kind in the module of its spec.
    CustomResource,
}

impl Derive {
    /// The derives of a part of a kind.
    pub(super) const SCHEMA_DERIVES: [Self; 6] =
        [Self::Clone, Self::Debug, Self::PartialEq, Self::Serialize, Self::Deserialize, Self::JsonSchema];

    /// Returns the last segment of the derive's path.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clone => "Clone",
            Self::Debug => "Debug",
            Self::PartialEq => "PartialEq",
            Self::Serialize => "Serialize",
            Self::Deserialize => "Deserialize",
            Self::JsonSchema => "JsonSchema",
            Self::CustomResource => "CustomResource",
        }
    }

    /// Returns `true` for a derive that reads the attributes of serde or schemars.
    pub(super) fn reads_json_attributes(self) -> bool {
        matches!(self, Self::Serialize | Self::Deserialize | Self::JsonSchema)
    }

    /// Returns `true` for a derive of another crate. It is always emitted with a path into kctl. A derive that the user
    /// wrote with another path is removed, because the user's crate does not need serde, schemars or kube.
    pub(super) fn is_external(self) -> bool {
        matches!(self, Self::Serialize | Self::Deserialize | Self::JsonSchema | Self::CustomResource)
    }
}

/// The fields of a struct with `#[serde(flatten)]`: their names are compared when the CRD is printed.
pub(super) struct FlattenedParts {
    /// JSON names of the fields without `flatten`.
    pub(super) names: Vec<String>,
    /// The fields with `flatten`, which have names and types with a schema.
    pub(super) parts: Vec<Field>,
}

/// The serde option that makes JSON have `readyReplicas` for `ready_replicas`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rename {
    /// `rename_all`, on a struct.
    All,
    /// `rename_all_fields`, on an enum: values such as `ClusterIP` keep their spelling, fields of variants do not.
    AllFields,
}

impl Rename {
    /// Returns the name of the serde option.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::All => "rename_all",
            Self::AllFields => "rename_all_fields",
        }
    }
}

/// The result of the `#[kctl(…)]` attributes of one type, field or variant.
#[derive(Default)]
pub(super) struct Annotations {
    /// The markers, in the order of the source.
    pub(super) markers: Markers,
    /// The treatment of `None`, for a field of type `Option`.
    pub(super) none: NonePolicy,
}

/// A type of the same file that lacks `#[schema]`.
pub(super) struct Stub {
    /// The name of the type, as the field of the user has it.
    pub(super) name: Ident,
    /// The derives that the type has.
    pub(super) derives: Vec<String>,
}
