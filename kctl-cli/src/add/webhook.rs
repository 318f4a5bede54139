//! `kctl add webhook`: defaulting and validation of a kind of the project.

use std::path::Path;

use super::{Added, error::AddFailure, project::Project};
use crate::new::{is_taken, snake_case};

/// Template of a module that defaults and validates a kind of the project.
const WEBHOOK: &str = include_str!("../../templates/webhook.rs.tpl");

impl Project {
    /// Generates defaulting and validation of a declared kind, with tests if the kind has a sample.
    ///
    /// The code needs the feature `webhook` of kctl, which [`Project::apply`] turns on.
    ///
    /// # Errors
    /// The kind is unknown or private, has a name that the template uses, or has a file with webhooks. Earlier versions of kctl
    /// wrote that file without underscores, `tearoom_webhook.rs`. If the project has a kind `Tearoom`, that file is its own.
    /// `HTTPRoute` and `HttpRoute` share a file name, so only one of them gets generated webhooks.
    pub(super) fn webhook(&self, kind: &str) -> Result<Added, AddFailure> {
        let kind = self.kind(kind)?;
        if kind.needs.hidden.contains(&kind.spec) {
            return Err(AddFailure::Private { names: kind.spec.clone(), file: self.file_of(kind) });
        }
        if is_taken(WEBHOOK, &kind.root) {
            return Err(AddFailure::TakenKind(kind.root.clone()));
        }
        let snake = snake_case(&kind.name);
        let module = format!("{snake}_webhook");
        let lower = kind.name.to_ascii_lowercase();
        let is_of_other = self.kinds.iter().any(|other| other.name != kind.name && snake_case(&other.name) == lower);
        let former = (!is_of_other).then(|| format!("{lower}_webhook"));
        for stem in [Some(&module), former.as_ref()].into_iter().flatten() {
            let file = format!("src/{stem}.rs");
            if self.exists(Path::new(&file))? {
                let mut others = self.kinds.iter().filter(|other| other.name != kind.name);
                let other = others.find(|other| snake_case(&other.name) == snake);
                let (kind, other) = (kind.name.clone(), other.map(|other| other.name.clone()));
                return Err(match other {
                    Some(other) => AddFailure::SharedWebhooks { kind, other, file },
                    None => AddFailure::HasWebhooks { kind, file },
                });
            }
        }
        let names = [
            ("kind", &*kind.name),
            ("root", &*kind.root),
            ("path", &*kind.path),
            ("group", &*kind.group),
            ("snake", &*snake),
        ];
        let text = self.with_sample(kind, WEBHOOK, &names);
        Ok(Added {
            files: vec![(format!("src/{module}.rs").into(), text)],
            call: format!(".admission::<({module}::default_{snake}, {module}::validate_{snake})>()"),
            module,
            features: &["webhook"],
            next: "cargo test".into(),
        })
    }
}
