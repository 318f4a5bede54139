//! The type of a kind's rules: all that differs between built-in kinds, as data and functions.
//!
//! The values are in `kinds/<group>/<kind>.rs`. A field that a kind does not name has the value of [`Kind::DEFAULT`].

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::Resource;
use crate::{amounts::Amounts, deletion::Propagation, field_errors::Errors, names::NameRule, status::GroupResource};

/// Returns the cells of an object's row in a `Table`.
pub(crate) type Printer = fn(&Value, Timestamp) -> Vec<Value>;
/// Validates an object.
pub(crate) type Validate = fn(&Value, &mut Errors);
/// Validates the change from an old object to a new one.
pub(crate) type ValidateChange = fn(&Value, &Value, &mut Errors);
/// Returns the key by which the rows of a table are ordered.
pub(crate) type RowOrder = fn(&Value) -> (i64, &str);
/// Returns `true` if a change frees something that a quota counts: old, new, now.
pub(crate) type FreesUsage = fn(Option<&Value>, &Value, Timestamp) -> bool;
/// Calls a function with the object, which lacks some parts meanwhile.
pub(crate) type DefaultRest = fn(&mut Value, &mut dyn FnMut(&mut Value));
/// Marks an object as being deleted, by the propagation policy and at a time.
pub(crate) type Mark = fn(&mut Value, Propagation, Timestamp);
/// Paths of fields, each as the names from the object down.
pub(crate) type Paths = &'static [&'static [&'static str]];

/// Values that the server gives to an object when it is written.
pub(crate) trait Environment {
    /// Returns the time in the format of `metadata.creationTimestamp`.
    fn now(&self) -> String;
    /// Returns a new uid.
    fn uid(&mut self) -> String;
    /// Returns an address of the cluster's range that no Service has.
    fn cluster_ip(&mut self) -> String;
}

/// The request that writes an object.
pub(crate) trait Requester {
    /// Returns the user, as `UserInfo` of `authentication.k8s.io`.
    fn user_info(&self) -> Value;
    /// Adds a warning to the response.
    fn warn(&self, warning: &str);
}

/// The rules of one kind. A field that has a name in kube-apiserver cites it.
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own, with its name in kube-apiserver")]
#[expect(clippy::struct_field_names, reason = "`kind` is how Kubernetes names the field")]
pub(crate) struct Kind {
    /// The API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The plural name, as in a path.
    pub(crate) resource: &'static str,
    /// The kind in `CamelCase`, as in objects.
    pub(crate) kind: &'static str,

    // Metadata.
    /// The rule for `metadata.name` and `metadata.generateName`.
    pub(crate) names: NameRule,
    /// Finalizers need no domain: the kind has only the validation of `k8s.io/apimachinery` (`ValidateObjectMeta`), not
    /// that of the core group (`validateKubeFinalizerName`).
    pub(crate) finalizers_without_domain: bool,
    /// The way in which writes change `metadata.generation`.
    pub(crate) generation: Generation,
    /// Fields of the metadata whose change counts as a generation, too.
    pub(crate) counted_metadata: &'static [&'static str],

    // Requests.
    /// The warning in each response.
    pub(crate) deprecation: Option<&'static str>,
    /// Fields for `fieldSelector` besides `metadata.name` (`AddFieldLabelConversionFunc`). A kind that lists none
    /// supports `metadata.namespace`; a kind that lists fields has to list it as well.
    pub(crate) selectable_fields: &'static [&'static str],
    /// A `PUT` creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// An update without `resourceVersion` is allowed (`AllowUnconditionalUpdate`).
    pub(crate) allows_unconditional_update: bool,
    /// The response to a delete that removes the object at once.
    pub(crate) delete_answer: DeleteAnswer,
    /// Objects are requests: the server responds to them and never stores them.
    pub(crate) review: Option<Review>,
    /// Subresources that lead to processes, which do not exist here.
    pub(crate) connects: &'static [&'static str],
    /// Subresources that respond with another kind than the resource. They have no table form.
    pub(crate) answers_other_kinds: &'static [&'static str],
    /// The object is a namespace: a request about it counts as being in the namespace with its name.
    pub(crate) is_own_namespace: bool,
    /// Adds to the object of a bookmark what Go's zero value of the internal type has besides that of the version.
    pub(crate) complete_bookmark: fn(&mut Value),
    /// No admission policy sees the objects (`admission/exclusion/resources.go`).
    pub(crate) is_exempt_from_policies: bool,
    /// The group that errors name, if it is not that of the kind.
    pub(crate) error_group: Option<&'static str>,

    // Deletion.
    /// A delete waits for the grace period of the object (`RESTGracefulDeleteStrategy`).
    pub(crate) deletes_gracefully: bool,
    /// Marks an object as being deleted before any other check of a delete. Its controller deletes what belongs to it.
    pub(crate) mark: Option<Mark>,
    /// Returns `true` if fields other than `metadata.finalizers` hold an object that is being deleted.
    pub(crate) is_held: fn(&Value) -> bool,
    /// Returns the reason why the object with this name may never be deleted.
    pub(crate) undeletable: fn(&str) -> Option<&'static str>,
    /// Without a propagation policy, a delete orphans dependents (`DefaultGarbageCollectionPolicy`).
    pub(crate) orphans_dependents: bool,
    /// The garbage collector has nothing to do for such objects (`GarbageCollectUnsupported`).
    pub(crate) has_no_dependents: bool,
    /// The warning about a delete without a propagation policy.
    pub(crate) deletion_warning: Option<&'static str>,

    // Creation and update.
    /// `status` of a new object, for kinds with a subresource `status`.
    pub(crate) new_status: NewStatus,
    /// Completes a new object (`PrepareForCreate`).
    pub(crate) prepare_create: fn(&mut dyn Environment, &mut Value),
    /// Completes a new object after its defaults are set (the part of `PrepareForCreate` that needs them). Clients do
    /// not own the added fields.
    pub(crate) complete_create: fn(&mut Value),
    /// Sets fields of a new object that depend on the request (the part of `PrepareForCreate` that needs its context).
    pub(crate) finish_create: fn(&dyn Requester, &mut Value),
    /// Sets times of an updated object after its other changes: old, new.
    pub(crate) finish_update: fn(&dyn Environment, &Value, &mut Value),
    /// Allocates values for a new or changed object, such as a cluster IP.
    pub(crate) allocate: fn(&mut dyn Environment, &mut Value),
    /// Sets names and labels that contain a generated name. The first argument is the object as it was sent.
    pub(crate) set_generated_name: fn(&Value, &mut Value),
    /// Restores the fields that an update through the subresource may not change (`PrepareForUpdate`), beyond those that
    /// `write/prepare/restore.rs` restores for every kind (status, spec, metadata). The arguments are the subresource, the
    /// old and the new object.
    pub(crate) prepare_update: fn(&str, &Value, &mut Value),
    /// Keeps parts of the old status in a write of the status.
    pub(crate) prepare_status: fn(&Value, &mut Value),
    /// Sets the times in a status that was written.
    pub(crate) set_status_times: fn(&dyn Environment, &Value, &mut Value),
    /// Sets times that were left out or that a change renews. The arguments include the old and the new object.
    pub(crate) set_times: fn(&dyn Environment, Option<&Value>, &mut Value),
    /// Drops fields that are accepted but never stored. A write of them still increments the generation.
    pub(crate) drop_unstored: fn(&mut Value),
    /// Fields of the metadata that a write of the status leaves as they are.
    pub(crate) kept_by_status: &'static [&'static str],
    /// Fields that a write resets, by subresource (`GetResetFields`), where the usual ones do not apply.
    pub(crate) reset_fields: &'static [(&'static str, Paths)],
    /// Subresources that write a part of the object.
    pub(crate) parts: &'static [Part],
    /// Returns the old object with the part of a new one that the subresource is for.
    pub(crate) with_part: fn(&str, &Value, &Value) -> Value,
    /// A list that is stored as `null` when it is empty, as a JSON pointer.
    pub(crate) null_when_empty: Option<&'static str>,

    // Defaults.
    /// Sets the defaults (`SetDefaults_…`).
    pub(crate) default: fn(&mut Value),
    /// Sets defaults with the given function. Parts with separate code, such as schemas of a CRD, are taken out before.
    pub(crate) default_rest: DefaultRest,
    /// The metadata has defaults.
    pub(crate) defaults_metadata: bool,
    /// Copies fields of the stored object before an update gets its defaults.
    pub(crate) keep_before_default: fn(&Value, &mut Value),
    /// A field of the status that only the defaults of a new object set.
    pub(crate) set_once: Option<&'static str>,
    /// The strategy's changes require the defaults to be set again.
    pub(crate) defaults_after_update: bool,
    /// Defaults that are not set when an object is decoded, but when it is stored, by JSON pointer.
    pub(crate) later_defaults: &'static [(&'static str, Undecoded)],
    /// Sets defaults of the metadata that depend on the rest, in each write and read.
    pub(crate) default_metadata: fn(&mut Value),
    /// Returns the reason why a sent object can't be decoded.
    pub(crate) decode_error: fn(&Value) -> Option<String>,

    // Ownership of fields.
    /// Fields that the server fills in: a client owns them only if it has sent them. JSON pointers.
    pub(crate) filled_in: &'static [&'static str],
    /// The lists among them that count as absent if they are empty, because Go drops them when it decodes.
    pub(crate) absent_when_empty: &'static [&'static str],
    /// The lists among them to which the server adds items: a client owns only the items that it has sent.
    pub(crate) extended_lists: &'static [&'static str],
    /// The fields among them that an update fills in again.
    pub(crate) filled_in_by_update: &'static [&'static str],
    /// Fields that a creator does not own. JSON pointers.
    pub(crate) unowned: &'static [&'static str],
    /// The state of an updated object from which `managedFields` are computed.
    pub(crate) owned_state: OwnedState,
    /// Completes the sent object as decoding does.
    pub(crate) complete_sent: Option<fn(&mut Value)>,
    /// Changes the state from which `managedFields` are computed: the object as sent, with defaults.
    pub(crate) complete_owned: fn(&Value, &mut Value),

    // Validation.
    /// Validates an object by itself.
    pub(crate) validate: Validate,
    /// Validates a new object instead of `validate`.
    pub(crate) validate_create: Option<Validate>,
    /// Validates the change that an update makes.
    pub(crate) validate_update: ValidateChange,
    /// Validates the change that a write of `status` makes.
    pub(crate) validate_status: ValidateChange,
    /// Validates the change that a write of `status` makes, where rules depend on the clock: now, old, new.
    pub(crate) validate_status_at: fn(Timestamp, &Value, &Value, &mut Errors),
    /// Validates changes at the end, by subresource.
    pub(crate) validate_subresource: fn(&str, &Value, &Value, &mut Errors),
    /// Validates a write through one of `parts`.
    pub(crate) validate_part: fn(&str, &Value, &Value, &mut Errors),
    /// A write of a subresource is validated like one of the object.
    pub(crate) validates_subresources: bool,
    /// `validate` checks only the name and the specification, so an unchanged specification is not validated again.
    pub(crate) validates_spec_only: bool,
    /// Returns the signer of certificates for which a write needs the permission to `sign`: subresource, old, new.
    pub(crate) signer: for<'a> fn(&str, &'a Value, &Value) -> Option<&'a str>,
    /// The metadata is validated only if the rest of the object is valid.
    pub(crate) validates_metadata_last: bool,
    /// Adds the warnings about a created or changed object: old, new, warnings.
    pub(crate) warn: fn(Option<&Value>, &Value, &mut Vec<String>),
    /// Warnings are repeated when the generation changes, not with each write.
    pub(crate) warns_once_per_generation: bool,

    // Tables.
    /// Returns the cells of a row. `None` for kinds whose tables have only the name and the creation time.
    pub(crate) printer: Option<Printer>,
    /// Returns the conditions of a row.
    pub(crate) row_conditions: fn(&Value) -> Option<Value>,
    /// Orders the rows; otherwise they are in the order of the list.
    pub(crate) row_order: Option<RowOrder>,

    // Relations.
    /// The template from which the kind's controller makes Pods, as a JSON pointer.
    pub(crate) pod_template: Option<&'static str>,
    /// The version in which objects are stored, for a kind whose versions have different fields.
    pub(crate) storage: Option<&'static StorageVersion>,
    /// The way in which quotas count objects of the kind.
    pub(crate) quota: Quota,
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

/// The response to a delete that removes the object at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteAnswer {
    /// A `Status` with `Success`; its details name the object.
    Status,
    /// The object's last state.
    Object,
    /// The object's last state, though the `OpenAPI` document says `Status`.
    UndocumentedObject,
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

/// The `status` of a new object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewStatus {
    /// Removed; `prepare_create` may set another.
    Reset,
    /// An empty object.
    Empty,
    /// The client's status stays.
    AsSent,
}

/// The decoded form of a field whose default is set when an object is stored, not when it is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// The field is absent.
    Absent,
    /// The field has its default already.
    AsDefault,
    /// The field has this string.
    Text(&'static str),
}

/// The state of an updated object from which `managedFields` are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnedState {
    /// The object as it is written to the store, with all fields that the server has set.
    Stored,
    /// The object as the client sent it.
    Sent,
    /// The object as the client sent it, without the fields in `filled_in`.
    SentByClient,
}

/// The version in which objects are stored and the rules of their kind are written.
pub(crate) struct StorageVersion {
    /// The version with its group, such as `autoscaling/v2`.
    pub(crate) api_version: &'static str,
    /// Returns an object in another version with its group.
    pub(crate) convert: fn(&str, &Value) -> Value,
    /// Normalizes an object of any version as a conversion to the internal version and back does.
    pub(crate) normalize: fn(&mut Value),
}

/// A subresource that writes a part of the object, such as `resize` of Pods.
pub(crate) struct Part {
    /// The name of the subresource.
    pub(crate) subresource: &'static str,
    /// Fields of the metadata that a write of the part leaves as they are.
    pub(crate) kept_metadata: &'static [&'static str],
    /// The state of the object from which `managedFields` are computed.
    pub(crate) owned_state: OwnedState,
}

/// Usage in quotas.
pub(crate) struct Quota {
    /// `true` if objects are counted (`count/…`). Kinds in `DefaultIgnoredResources` are not.
    pub(crate) is_counted: bool,
    /// Returns `true` if the name in a quota is about these objects, besides `count/…`.
    pub(crate) counts: fn(&str) -> bool,
    /// Returns the usage of an object besides `count/…`.
    pub(crate) usage: fn(&Value, Timestamp) -> Amounts,
    /// Returns `true` if an update through the subresource may change the usage: subresource, old, new.
    pub(crate) changes_usage: fn(&str, &Value, &Value) -> bool,
    /// Returns `true` if an event of the object frees something, so that quotas are counted again: old, new, now.
    pub(crate) frees_usage: Option<FreesUsage>,
    /// Returns a message about the counted amounts that an object must specify but does not.
    pub(crate) missing: fn(&BTreeSet<&str>, &Value) -> Option<String>,
    /// Returns `true` if an object is in the scope: object, name, operator, values.
    pub(crate) is_in_scope: fn(&Value, &str, &str, &Value) -> bool,
}

impl Quota {
    /// No object of the kind uses a quota, apart from the count.
    pub(crate) const DEFAULT: Self = Self {
        is_counted: true,
        counts: |_| false,
        usage: |_, _| Amounts::new(),
        changes_usage: |_, _, _| false,
        frees_usage: None,
        missing: |_, _| None,
        is_in_scope: |_, _, _, _| false,
    };
    /// The kind is in `DefaultIgnoredResources`.
    pub(crate) const NOT_COUNTED: Self = Self { is_counted: false, ..Self::DEFAULT };
}

impl Kind {
    /// Fields of the metadata that clients write.
    pub(crate) const CLIENT_METADATA: &'static [&'static str] =
        &["ownerReferences", "labels", "annotations", "finalizers"];
    /// Fields that a write of the status resets for kinds whose metadata is not writable through it.
    pub(crate) const ALL_BUT_STATUS: Paths = &[&["metadata"], &["spec"]];

    /// A kind with these rules has no validation, no defaults, and a name that is a DNS subdomain.
    pub(crate) const DEFAULT: Self = Self {
        group: "",
        resource: "",
        kind: "",
        names: NameRule::Subdomain,
        finalizers_without_domain: false,
        generation: Generation::None,
        counted_metadata: &[],
        deprecation: None,
        selectable_fields: &[],
        creates_on_update: false,
        allows_unconditional_update: true,
        delete_answer: DeleteAnswer::Status,
        review: None,
        connects: &[],
        answers_other_kinds: &[],
        is_own_namespace: false,
        complete_bookmark: |_| {},
        is_exempt_from_policies: false,
        error_group: None,
        deletes_gracefully: false,
        mark: None,
        is_held: |_| false,
        undeletable: |_| None,
        orphans_dependents: false,
        has_no_dependents: false,
        deletion_warning: None,
        new_status: NewStatus::Reset,
        prepare_create: |_, _| {},
        complete_create: |_| {},
        finish_create: |_, _| {},
        finish_update: |_, _, _| {},
        allocate: |_, _| {},
        set_generated_name: |_, _| {},
        prepare_update: |_, _, _| {},
        prepare_status: |_, _| {},
        set_status_times: |_, _, _| {},
        set_times: |_, _, _| {},
        drop_unstored: |_| {},
        kept_by_status: &[],
        reset_fields: &[],
        parts: &[],
        with_part: |_, _, new| new.clone(),
        null_when_empty: None,
        default: |_| {},
        default_rest: |object, default| default(object),
        defaults_metadata: false,
        keep_before_default: |_, _| {},
        set_once: None,
        defaults_after_update: false,
        later_defaults: &[],
        default_metadata: |_| {},
        decode_error: |_| None,
        filled_in: &[],
        absent_when_empty: &[],
        extended_lists: &[],
        filled_in_by_update: &[],
        unowned: &[],
        owned_state: OwnedState::Stored,
        complete_sent: None,
        complete_owned: |_, _| {},
        validate: |_, _| {},
        validate_create: None,
        validate_update: |_, _, _| {},
        validate_status: |_, _, _| {},
        validate_status_at: |_, _, _, _| {},
        validate_subresource: |_, _, _, _| {},
        validate_part: |_, _, _, _| {},
        validates_subresources: false,
        validates_spec_only: false,
        validates_metadata_last: false,
        signer: |_, _, _| None,
        warn: |_, _, _| {},
        warns_once_per_generation: false,
        printer: None,
        row_conditions: |_| None,
        row_order: None,
        pod_template: None,
        storage: None,
        quota: Quota::DEFAULT,
    };

    /// The rules of custom resources.
    pub(crate) const CUSTOM: Self = Self {
        finalizers_without_domain: true,
        generation: Generation::Counted,
        allows_unconditional_update: false,
        reset_fields: &[("status", Self::ALL_BUT_STATUS)],
        ..Self::DEFAULT
    };

    /// Returns `true` if no webhook sees the objects: the reviews of access and tokens
    /// (`admission/exclusion/resources.go`).
    pub(crate) fn is_exempt_from_webhooks(&self) -> bool {
        self.review.is_some_and(|review| review != Review::Binding)
    }

    /// Returns `true` if the `OpenAPI` document says that a delete returns the object and not a `Status`.
    pub(crate) fn answers_deleted(&self) -> bool {
        self.delete_answer == DeleteAnswer::Object
    }

    /// Returns the group and resource.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group, self.resource)
    }

    /// Returns `true` if the rules are those of this group and resource.
    pub(crate) fn is_of(&self, resource: &GroupResource) -> bool {
        resource.resource == self.resource && resource.group == self.group
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kind").field("group", &self.group).field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl Resource {
    /// Returns the part of the object that a subresource writes, such as `ephemeralcontainers` and `resize` of Pods.
    ///
    /// `None` for the object itself and for its status.
    pub(crate) fn part(&self, subresource: &str) -> Option<&'static Part> {
        self.kind.parts.iter().find(|part| part.subresource == subresource)
    }

    /// Returns `true` if the resource has the rules of this kind.
    ///
    /// Kinds are compared by address: each has one static value.
    pub(crate) fn is(&self, kind: &'static Kind) -> bool {
        std::ptr::eq(self.kind, kind)
    }
}
