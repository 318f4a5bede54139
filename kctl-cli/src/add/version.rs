//! A new version of a kind: a copy of its spec, and conversions in both directions.

use super::{Added, error::AddFailure, project::Project, source::Kind};
use crate::new::{is_taken, is_version, snake_case};

/// Template of a module with the new version, its conversions and tests of both directions.
const VERSION: &str = include_str!("../../templates/version.rs.tpl");

/// Options of `#[resource]` that are not copied. The new version has other values, and is neither deprecated nor unserved.
const LEFT_OUT: [&str; 4] = ["version", "storage", "deprecated", "served"];

impl Project {
    /// Returns a version of a kind that is a copy of the stored version.
    ///
    /// Both versions have the same fields at first, so the conversions copy each field. The user edits them with the new
    /// spec. Types of the file, such as enums in the spec, are imported and not copied, and so are the names that it imports.
    ///
    /// # Errors
    /// The version is malformed or exists. The kind is unknown or ambiguous, or has a name that the template uses. Its spec has
    /// no named fields, private fields or types, or types with relative paths.
    pub(super) fn version(&self, version: &str, kind: Option<&str>) -> Result<Added, AddFailure> {
        if !is_version(version) {
            return Err(AddFailure::Version(version.into()));
        }
        let kind = self.kind_or_only(kind)?;
        if let Some(same) = self.kinds.iter().find(|known| known.name == kind.name && known.version == version) {
            let (kind, version, file) = (same.name.clone(), version.to_owned(), self.file_of(same));
            return Err(AddFailure::HasVersion { kind, version, file });
        }
        let fields = kind
            .fields
            .as_ref()
            .ok_or_else(|| AddFailure::NoFields { kind: kind.name.clone(), file: self.file_of(kind) })?;
        if !kind.needs.hidden.is_empty() {
            return Err(AddFailure::Private { names: kind.needs.hidden.join("`, `"), file: self.file_of(kind) });
        }
        if kind.has_relative_types {
            return Err(AddFailure::RelativeTypes { kind: kind.name.clone(), file: self.file_of(kind) });
        }
        if is_taken(VERSION, &kind.root) {
            return Err(AddFailure::TakenKind(kind.root.clone()));
        }
        let snake = snake_case(&kind.name);
        let module = format!("{snake}_{version}");
        let has_status = kind.options.iter().any(|(name, _)| name == "status");
        let copied: Vec<String> = fields.iter().map(|(name, _)| format!("{name}: object.spec.{name},")).collect();
        let declared: Vec<String> = fields.iter().map(|(_, field)| format!("{field},")).collect();
        let text = self.with_sample(
            kind,
            VERSION,
            &[
                ("imports", &imports(kind)),
                ("attributes", &kind.attributes),
                ("options", &options(kind, version)),
                ("fields", &declared.join("\n")),
                ("copied", &copied.join("\n")),
                ("status", if has_status { "status: object.status," } else { "" }),
                ("kind", &kind.name),
                ("root", &kind.root),
                ("spec", &kind.spec),
                ("path", &kind.path),
                ("old", &kind.version),
                ("version", version),
                ("snake", &snake),
            ],
        );
        Ok(Added {
            files: vec![(format!("src/{module}.rs").into(), text)],
            call: format!(
                ".kind::<{module}::{}>().conversion::<({module}::{snake}_to_{version}, {module}::{snake}_from_{version})>()",
                kind.root
            ),
            module,
            features: &["webhook"],
            next: "cargo test".into(),
        })
    }

    /// Returns the kind with this name, or the project's only one.
    ///
    /// # Errors
    /// The kind is unknown or ambiguous, or the project declares no kind.
    fn kind_or_only(&self, name: Option<&str>) -> Result<&Kind, AddFailure> {
        match (name, self.kinds.as_slice()) {
            (Some(name), _) => self.kind(name),
            (None, [first, others @ ..]) if others.iter().all(|other| other.name == first.name) => {
                self.kind(&first.name)
            }
            (None, []) => Err(AddFailure::NoKinds),
            (None, _) => Err(AddFailure::WhichKind(self.names())),
        }
    }
}

/// Returns the options of `#[resource]` for the new version. The old one remains the storage version.
///
/// Objects in etcd keep their form until the user moves `storage` to the new version.
fn options(kind: &Kind, version: &str) -> String {
    let kept = kind.options.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
    let mut options: Vec<String> = kept.map(|(_, text)| text.clone()).collect();
    options.insert(options.len().min(1), format!("version = \"{version}\""));
    options.push("storage = false".into());
    options.join(", ")
}

/// Returns the `use` declarations for the names in the fields, and copies of functions that can't be imported, or an empty
/// string.
fn imports(kind: &Kind) -> String {
    let uses = kind.needs.uses.iter().map(|(_, path)| format!("use {path};\n")).collect::<Vec<_>>().concat();
    let items = match kind.needs.items.as_slice() {
        [] => String::new(),
        [one] => format!("use {}::{one};\n", kind.path),
        items => format!("use {}::{{{}}};\n", kind.path, items.join(", ")),
    };
    let copied = kind.needs.private.iter().map(|(_, text)| format!("\n{text}\n")).collect::<Vec<_>>().concat();
    match uses + &items {
        uses if uses.is_empty() => copied,
        uses => format!("\n{uses}{copied}"),
    }
}
