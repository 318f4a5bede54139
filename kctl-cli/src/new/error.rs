//! The reasons why a project could not be created.

use std::path::PathBuf;

use super::names::{KIND_LEN_MAX, NAME_LEN_MAX, is_group};

/// Returns the message about a group in which API servers reject CRDs without a review of the API.
pub(crate) fn protected_group(group: &str) -> String {
    format!(
        "the API group `{group}` belongs to Kubernetes: API servers reject its CRDs without the annotation \
         `api-approved.kubernetes.io`\nhelp: use a domain of your own, such as `apps.example.com`; for a reviewed API, write \
         its group and `annotation(\"api-approved.kubernetes.io\", \"URL\")` into `#[resource]` afterwards"
    )
}

/// Returns the message about a group that is not a domain name. Upper case letters as the only mistake are named.
pub(crate) fn invalid_group(group: &str) -> String {
    let lower = group.to_ascii_lowercase();
    if lower != group && is_group(&lower) {
        return format!("`{group}` is not a valid API group, because it has upper case letters: use `{lower}`");
    }
    format!("`{group}` is not a valid API group: use a domain name, such as `apps.example.com`")
}

/// Returns the message about a version that API servers do not sort as one.
pub(crate) fn invalid_version(version: &str) -> String {
    format!("`{version}` is not a version of Kubernetes' form: use for example `v1`, `v1beta1` or `v2alpha1`")
}

/// A project could not be created.
#[derive(Debug, thiserror::Error)]
pub(super) enum NewFailure {
    /// The path ends in `..` or is a root, so that it has no last component to name the project by.
    #[error("`{0}` has no last path component to name the project after: pass a directory, such as `web-site`")]
    NoFolder(PathBuf),
    /// The name breaks the rules of `is_name`, which combine the rules of labels and of Cargo.
    #[error(
        "`{0}` is not a valid project name: use at most {NAME_LEN_MAX} lower case letters, digits and dashes, a letter first, such as `web-site`, or give the name with `--name`"
    )]
    Name(String),
    /// Cargo has a directory of that name in `target` (`BUILT`).
    #[error("`{0}` is the name of a directory that Cargo creates in `target`: choose another name, such as `{0}-site`")]
    CargosName(String),
    /// A crate of that name would hide another crate, or is a keyword (`TAKEN`).
    #[error("`{0}` is a Rust keyword or the name of a crate: choose another name, such as `{0}-site`")]
    TakenName(String),
    /// The kind would shadow a type that the generated program uses (`is_taken`).
    #[error("`{0}` is a name that the program uses itself: choose another kind, such as `--kind {0}Site`")]
    TakenKind(String),
    /// The kind breaks the rules of `is_kind`.
    #[error(
        "`{0}` is not a valid kind: use at most {KIND_LEN_MAX} letters and digits, an upper case letter first, such as `WebSite`, and not a YAML boolean or null"
    )]
    Kind(String),
    /// The API group breaks the rules of `is_group`.
    #[error("{}", invalid_group(.0))]
    Group(String),
    /// The version does not have the form `v1`, `v1beta1` or `v2alpha1` (`is_version`).
    #[error("{}", invalid_version(.0))]
    Version(String),
    /// The API group is one of Kubernetes itself (`is_protected_group`).
    #[error("{}", protected_group(.0))]
    ProtectedGroup(String),
    /// `--name` has a slash, or is `.` or `..`.
    #[error(
        "`{0}` is a path, and `--name` is the name alone\nhelp: pass the folder as the argument, such as `kctl new {0}`"
    )]
    NameIsPath(String),
    /// The kind that follows from the name is a boolean or null in YAML. Other names of projects give valid kinds.
    #[error(
        "the name `{name}` gives the kind `{kind}`, which YAML reads as a boolean or null\nhelp: choose a kind, such as `--kind {kind}Site`"
    )]
    DerivedKind { name: String, kind: String },
    /// There is a file at the path of the new project.
    #[error("`{0}` is a file\nhelp: pass a folder that does not exist, such as `kctl new web-site`")]
    IsFile(PathBuf),
    /// The folder exists and has other files than a repository.
    #[error(
        "the folder `{0}` has files already, and `kctl new` fills only an empty folder or a fresh clone\nhelp: pass a folder that does not exist, such as `kctl new web-site`, or add to a kctl project that is there, by `kctl add`"
    )]
    HasFiles(PathBuf),
    /// The folder of `--kctl` has neither the crate nor a repository with it.
    #[error("{0} does not contain the kctl crate: pass the directory with its Cargo.toml")]
    NoKctl(PathBuf),
    /// The folder of the new project exists, and its files can't be listed.
    #[error("{path} cannot be read")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file or its folder cannot be written.
    #[error("{path} cannot be written")]
    Write { path: PathBuf, source: std::io::Error },
    /// A manifest in `deploy/` cannot be written as YAML.
    #[error("the manifests in deploy/ cannot be written as YAML")]
    Manifests(#[from] serde_saphyr::SerializeError),
}
