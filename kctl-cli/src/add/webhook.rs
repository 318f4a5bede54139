//! `kctl add webhook`: defaulting and validation of a kind of the project.

use super::{Added, error::AddFailure, project::Project};

/// Template of a module that defaults and validates a kind of the project.
const WEBHOOK: &str = include_str!("../../templates/webhook.rs.tpl");

impl Project {
    /// Generates defaulting and validation of a declared kind, with tests if the kind has a sample.
    ///
    /// The code needs the feature `webhook` of kctl, which [`Project::apply`] turns on.
    pub(super) fn webhook(&self, kind: &str) -> Result<Added, AddFailure> {
        let kind = self.kind(kind)?;
        let lower = kind.name.to_ascii_lowercase();
        let module = format!("{lower}_webhook");
        let names = [("kind", &*kind.name), ("path", &*kind.path), ("group", &*kind.group), ("lower", &*lower)];
        let text = self.with_sample(kind, WEBHOOK, &names);
        Ok(Added {
            files: vec![(format!("src/{module}.rs").into(), text)],
            call: format!(".admission::<({module}::default_{lower}, {module}::validate_{lower})>()"),
            module,
            features: &["webhook"],
            next: "cargo test".into(),
        })
    }
}
