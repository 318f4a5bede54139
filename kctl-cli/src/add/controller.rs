//! `kctl add controller`: a kind with its controller, tests and a sample.

use kctl_apimachinery::validation::is_protected_group;

use super::{Added, error::AddFailure, project::Project, source::Kind};
use crate::new::{
    TAKEN, default_kind, fill_template, is_group, is_kind, is_name, is_taken, is_version, plural, snake_case,
};

/// Names of the root files of crates, which no module can have.
const ROOTS: [&str; 2] = ["lib", "main"];

/// Template of a module with a kind, its reconcile function and tests; [`fill_template`] puts in the names.
const CONTROLLER: &str = include_str!("../../templates/controller.rs.tpl");
/// Template of the object in `samples/`, the same that `kctl new` writes.
const SAMPLE: &str = include_str!("../../templates/sample.yaml.tpl");

impl Project {
    /// Generates a kind with its controller and a sample.
    ///
    /// The kind is derived from the name (`tea-room` is `TeaRoom`), and the group is taken from the project's first
    /// kind.
    pub(super) fn controller(
        &self,
        name: &str,
        group: Option<&str>,
        kind: Option<&str>,
        version: &str,
    ) -> Result<Added, AddFailure> {
        if !is_name(name) {
            return Err(AddFailure::Name(name.into()));
        }
        if !is_module(name) {
            return Err(AddFailure::TakenName(name.into()));
        }
        let kind = kind.map_or_else(|| default_kind(name), ToOwned::to_owned);
        if let Some(known) = self.kinds.iter().find(|known| known.name == kind) {
            return Err(AddFailure::HasKind { kind, file: self.file_of(known) });
        }
        if !is_kind(&kind) || is_taken(CONTROLLER, &kind) {
            return Err(AddFailure::Kind(kind));
        }
        let group = group.or_else(|| self.kinds.first().map(|kind| kind.group.as_str())).unwrap_or("example.com");
        if !is_group(group) {
            return Err(AddFailure::Group(group.into()));
        }
        if is_protected_group(group) {
            return Err(AddFailure::ProtectedGroup(group.into()));
        }
        if !is_version(version) {
            return Err(AddFailure::Version(version.into()));
        }
        let lower = kind.to_ascii_lowercase();
        for name in [plural(&lower), lower] {
            let has_name = |known: &&Kind| known.group == group && known.resource_names.contains(&name);
            if let Some(known) = self.kinds.iter().find(has_name) {
                let (known, file) = (known.name.clone(), self.file_of(known));
                return Err(AddFailure::SameNames { kind, known, file, name });
            }
        }
        let function = format!("reconcile_{}", snake_case(&kind));
        let module = name.replace('-', "_");
        let names =
            [("name", name), ("group", group), ("version", version), ("kind", &*kind), ("function", &*function)];
        let fill = |text: &str| fill_template(text, &names);
        Ok(Added {
            files: vec![
                (format!("src/{module}.rs").into(), fill(CONTROLLER)),
                (format!("samples/{name}.yaml").into(), fill(SAMPLE)),
            ],
            call: format!(".controller::<{module}::{function}>()"),
            module,
            features: &[],
            next: format!("cargo run -- dev -f samples/{name}.yaml --until-idle"),
        })
    }
}

/// Returns `true` if a controller's name is valid for a new module of the project.
///
/// A keyword is not an identifier, and a module `core` or `kctl` would shadow the crate.
fn is_module(name: &str) -> bool {
    let is_identifier = syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_ok();
    is_identifier && !TAKEN.contains(&name) && !ROOTS.contains(&name)
}
