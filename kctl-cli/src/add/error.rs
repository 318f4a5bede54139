//! The reasons why nothing could be added, or why lines are left to the user.

use std::path::PathBuf;

use crate::new::{NAME_LEN_MAX, invalid_group, invalid_version, protected_group};

/// Nothing could be added.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddFailure {
    /// Neither `src/main.rs` nor `src/lib.rs` calls `App::new` outside of its tests.
    #[error(
        "{0} has no src/main.rs or src/lib.rs with `App::new(…)`: name the folder of a kctl project with `--project`"
    )]
    NoApp(PathBuf),
    /// The name of a controller cannot become the name of a module.
    #[error(
        "`{0}` is not a valid name: use at most {NAME_LEN_MAX} lower case letters, digits and dashes, a letter first, such as `tea-room`"
    )]
    Name(String),
    /// A module cannot have the name of the controller (`is_module`).
    #[error(
        "`{0}` is a Rust keyword, or the name of a crate or of its root file: choose another name, such as `{0}-controller`"
    )]
    TakenName(String),
    /// A `#[resource]` of the project declares the kind.
    #[error("{kind} is declared already, in {file}: choose another name, or another kind with `--kind`")]
    HasKind { kind: String, file: String },
    /// A kind of the group has the plural or singular of the new one among its names, so API servers would reject one of
    /// the CRDs.
    #[error(
        "{kind} and {known} in {file} would both have the resource name `{name}`: choose another name, or another kind with `--kind`, or \
         another group with `--group`"
    )]
    SameNames { kind: String, known: String, file: String, name: String },
    /// The kind is malformed, or shadows a type in the generated module.
    #[error("`{0}` is not a valid kind, or the generated code uses a type of this name: choose another with `--kind`")]
    Kind(String),
    /// The kind has the name of a type that the generated module uses, and an imported kind would shadow it.
    #[error("the generated code uses the name `{0}` itself: write the module by hand")]
    TakenKind(String),
    /// The API group is not a domain name with at least one dot.
    #[error("{}", invalid_group(.0))]
    Group(String),
    /// The API group is one of Kubernetes itself (`is_protected_group`).
    #[error("{}", protected_group(.0))]
    ProtectedGroup(String),
    /// The version does not have the form `v1`, `v1beta1` or `v2alpha1`.
    #[error("{}", invalid_version(.0))]
    Version(String),
    /// No file directly in `src/` declares the kind; modules in folders are not searched.
    #[error("no `#[resource(…, kind = \"{kind}\")]` was found in src/; kinds there: {known}")]
    NoKind { kind: String, known: String },
    /// Kinds of two groups have the name. Files and functions are named after the kind alone.
    #[error(
        "{kind} is declared in two groups, {first} and {second}, and generated modules are named after the kind alone: write the \
         module by hand"
    )]
    TwoGroups {
        kind: String,
        /// The group and the file of one declaration, such as `` `a.example.com` in src/a.rs ``.
        first: String,
        /// The group and the file of the other declaration.
        second: String,
    },
    /// `kctl add version` without `--kind` in a project without kinds.
    #[error("no `#[resource]` was found in src/: `kctl add controller NAME` adds a kind, which can then have versions")]
    NoKinds,
    /// `kctl add version` without `--kind` in a project with several kinds.
    #[error("the project has the kinds {0}: choose one with `--kind`")]
    WhichKind(String),
    /// A `#[resource]` of the kind declares this version.
    #[error("{kind} has the version {version} already, in {file}")]
    HasVersion { kind: String, version: String, file: String },
    /// The version would be a copy of the fields, and a tuple or unit struct has no names to copy.
    #[error("the spec of {kind} in {file} is not a struct with named fields: write the version by hand")]
    NoFields { kind: String, file: String },
    /// The new module is not the one of the kind, and private names can be neither imported nor copied.
    #[error("the new module needs `{names}`, which {file} keeps private: write `pub` there")]
    Private { names: String, file: String },
    /// The path of the status, or of a type in the spec, begins with `self`, or with `crate` or `super` in another crate.
    #[error(
        "{kind} in {file} has a type whose path begins with `self`, `super` or `crate`, and the path is wrong in the new module: import the \
         type with `use`, or write the version by hand"
    )]
    RelativeTypes { kind: String, file: String },
    /// A new file would replace one of the user. Checked for all files before anything is written.
    #[error("{0} already exists, and is never overwritten: choose another name, or remove it")]
    Exists(PathBuf),
    /// A second module of the name would not compile.
    #[error(
        "{file} has the name `{module}` already, and the new module needs it: choose another name, and the kind with `--kind`, or rename \
         it there"
    )]
    HasModule { module: String, file: String },
    /// There is a module with the name of the kind's webhooks, which follows from the kind.
    #[error(
        "{file} exists already, and the webhooks of {kind} belong there: change them, or rename the module if it has something else; to \
         generate them again, remove the file, its `mod` line and the call of `.admission`"
    )]
    HasWebhooks { kind: String, file: String },
    /// The module may have the webhooks of another kind: both names become the same one in snake case.
    #[error(
        "{file} exists already, and the webhooks of both {kind} and {other} belong there: write the missing ones there by hand"
    )]
    SharedWebhooks { kind: String, other: String, file: String },
    /// A file of the project cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// A file in `src/` is not valid Rust, so the kinds in it are unknown.
    #[error("{path}: cannot be parsed: {message}")]
    Syntax { path: PathBuf, message: String },
    /// Some lines had no unambiguous place. The new files exist, and the message has the lines.
    #[error("the new files are written, but these lines have to be added by hand:\n{0}")]
    ByHand(String),
}
