//! The rules of a kind's metadata: its names, finalizers and generation.

use serde_json::Value;

use crate::names::NameRule;

/// The rules of the metadata of a kind.
pub(crate) struct Metadata {
    /// The rule for `metadata.name` and `metadata.generateName`.
    pub(crate) names: NameRule,
    /// Finalizers need no domain: the kind has only the validation of `k8s.io/apimachinery` (`ValidateObjectMeta`), not
    /// the validation of the core group (`validateKubeFinalizerName`).
    pub(crate) finalizers_without_domain: bool,
    /// The way in which writes change `metadata.generation`.
    pub(crate) generation: Generation,
    /// Fields of the metadata whose change counts as a generation, too.
    pub(crate) counted: &'static [&'static str],
    /// `Defaults::set` sets defaults of the metadata.
    pub(crate) has_defaults: bool,
    /// Sets defaults of the metadata that depend on the rest of an updated object, and that no manager owns. A new
    /// object gets them from `Strategy::prepare_create` of its kind.
    pub(crate) default: fn(&mut Value),
}

impl Metadata {
    /// Names are DNS subdomains, and objects have no generation.
    pub(crate) const DEFAULT: Self = Self {
        names: NameRule::Subdomain,
        finalizers_without_domain: false,
        generation: Generation::None,
        counted: &[],
        has_defaults: false,
        default: |_| {},
    };
    /// Changes increment the generation.
    pub(crate) const COUNTED: Self = Self { generation: Generation::Counted, ..Self::DEFAULT };
}

/// The way in which `metadata.generation` changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Objects have no generation.
    None,
    /// The generation is 1 and never incremented.
    Fixed,
    /// Starts at 1 and is incremented with each counted change.
    Counted,
    /// Unset on creation, and incremented with each counted change.
    CountedFromNone,
}
