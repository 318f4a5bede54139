//! The requests that a kind supports, and what differs in their responses.

use serde_json::Value;

use super::Subresource;

/// Returns the value of a field of an object, given the path of the field; `None` for the value at that path.
pub(crate) type SelectedValue = fn(&Value, &str) -> Option<String>;

/// Differences in how the server handles requests for a kind.
pub(crate) struct Requests {
    /// The warning in each response.
    pub(crate) deprecation: Option<&'static str>,
    /// Fields for `fieldSelector` besides `metadata.name` (`AddFieldLabelConversionFunc`). A kind that lists none
    /// supports `metadata.namespace`; a kind that lists fields has to list it as well.
    pub(crate) selectable_fields: &'static [&'static str],
    /// Returns the value that a field selector compares with, for fields whose value is not the one at their path.
    pub(crate) selected_value: SelectedValue,
    /// The object is a namespace: a request about it counts as being in the namespace with its name.
    pub(crate) is_own_namespace: bool,
    /// No admission policy sees the objects (`admission/exclusion/resources.go`).
    pub(crate) is_exempt_from_policies: bool,
    /// Objects are requests: the server responds to them and never stores them.
    pub(crate) review: Option<Review>,
    /// Subresources that lead to processes, which do not exist here.
    pub(crate) connects: &'static [Subresource],
    /// The target of those subresources.
    pub(crate) connect_target: ConnectTarget,
    /// A request needs the objects that controllers create in a new namespace, such as its default `ServiceAccount`.
    pub(crate) needs_complete_namespace: bool,
    /// Subresources whose objects are created and never stored. They have no table form.
    pub(crate) created_subresources: &'static [Subresource],
    /// The group that errors name, if it is not the group of the kind.
    pub(crate) error_group: Option<&'static str>,
    /// Adds to the object of a bookmark what Go's zero value of the internal type has in addition to the version's zero
    /// value.
    pub(crate) complete_bookmark: fn(&mut Value),
}

impl Requests {
    /// Objects are stored, and field selectors know their name and namespace alone.
    pub(crate) const DEFAULT: Self = Self {
        deprecation: None,
        selectable_fields: &[],
        selected_value: |_, _| None,
        is_own_namespace: false,
        is_exempt_from_policies: false,
        review: None,
        connects: &[],
        connect_target: ConnectTarget::Container,
        needs_complete_namespace: false,
        created_subresources: &[],
        error_group: None,
        complete_bookmark: |_| {},
    };
}

/// The kinds of `authentication.k8s.io` and `authorization.k8s.io`, and Binding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    /// Assigns a Pod to a Node.
    Binding,
    /// `LocalSubjectAccessReview`: reviews if a user may do something in this namespace.
    LocalSubjectAccess,
    /// `SelfSubjectReview`: returns the user as which the server sees the caller.
    SelfSubject,
    /// `SelfSubjectAccessReview`: reviews if the caller may do something.
    SelfSubjectAccess,
    /// `SelfSubjectRulesReview`: returns the rules of the caller in a namespace.
    SelfSubjectRules,
    /// `SubjectAccessReview`: reviews if a user may do something anywhere.
    SubjectAccess,
    /// `TokenReview`: returns the user that a token identifies.
    Token,
}

/// The process to which a connection through a subresource leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectTarget {
    /// A container of the object, a Pod.
    Container,
    /// An endpoint of the object, a Service.
    Endpoint,
    /// The kubelet of the object, a Node.
    Kubelet,
}
