//! The names of a project, its kind and its group: what Kubernetes, Rust, Cargo and YAML accept.

use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label, is_dns1123_subdomain};

/// Maximum length of a name: the name of the Service `NAME-metrics` is a DNS label.
pub(crate) const NAME_LEN_MAX: usize = LABEL_LEN_MAX - "-metrics".len();

/// Maximum length of a kind: the name of its list, `KINDList`, is a DNS label, too.
pub(super) const KIND_LEN_MAX: usize = LABEL_LEN_MAX - "List".len();

/// Names of programs that Cargo rejects, since its target directory has folders of these names.
pub(super) const BUILT: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Kinds that the YAML of Kubernetes reads as a boolean or as null, in lower case.
const READ_BY_YAML: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

/// Names that `cargo new` rejects (keywords and crates of Rust), and the names of the dependencies: a module `tokio` would
/// shadow the crate in `#[tokio::main]`.
pub(crate) const TAKEN: [&str; 58] = [
    "kctl",
    "tokio",
    "alloc",
    "core",
    "proc-macro",
    "std",
    "test",
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Returns `true` for lower case letters, digits and dashes, a letter first.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_name_byte);
    name.split('-').all(is_part)
        && name.len() <= NAME_LEN_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Upper case is excluded: it is also the name of an image, which registries reject with upper case letters.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Returns `true` for letters and digits, an upper case letter first.
pub(crate) fn is_kind(kind: &str) -> bool {
    kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && kind.len() <= KIND_LEN_MAX
        && !READ_BY_YAML.contains(&kind.to_ascii_lowercase().as_str())
}

/// Returns `true` for a domain name.
///
/// A group of one label, such as `apps`, is rejected: Kubernetes leaves those to its built-in kinds.
pub(crate) fn is_group(group: &str) -> bool {
    group.contains('.') && is_dns1123_subdomain(group) && group.split('.').all(is_dns1123_label)
}

/// Returns `true` for `v1`, `v1beta2` and `v2alpha1`, the form that API servers sort by.
///
/// A leading zero is rejected, and so is `v1beta` without a number.
pub(crate) fn is_version(version: &str) -> bool {
    let is_number = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit() && c != '0') && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some(rest) = version.strip_prefix('v') else { return false };
    ["alpha", "beta"]
        .iter()
        .find_map(|stage| rest.split_once(stage))
        .map_or_else(|| is_number(rest), |(major, stage)| is_number(major) && is_number(stage))
}

/// Returns `true` if a type of this name would shadow one that the program uses, such as `App`.
pub(crate) fn is_taken(program: &str, kind: &str) -> bool {
    let code = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    kind == "Self" || words.any(|word| word == kind)
}

/// Returns the plural of a resource as kube's derive forms it from the singular, which is the kind in lower case.
///
/// The option `plural = "…"` of `#[resource]` overrides it.
pub(crate) fn plural(singular: &str) -> String {
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end)) {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{singular}s"),
    }
}

/// Returns the kind that a project or controller has unless the user names one: `tea-room` gives `TeaRoom`.
///
/// # Panics
/// A part between dashes is empty, which [`is_name`] rejects.
pub(crate) fn default_kind(name: &str) -> String {
    debug_assert!(is_name(name), "`{name}` is checked first: its parts begin with an ASCII letter or digit");
    let capitalize = |part: &str| {
        let (first, rest) = part.split_at(1);
        first.to_ascii_uppercase() + rest
    };
    name.split('-').map(capitalize).collect()
}

/// Replaces `{{…}}` in a template by names.
///
/// A name without a placeholder in the template is ignored, so templates need not use all of them. Braces in the values are
/// copied: a value may be the user's code.
pub(crate) fn fill_template(template: &str, names: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let filled = after.split_once("}}").and_then(|(place, end)| {
            let (_, value) = names.iter().find(|(name, _)| *name == place)?;
            Some((*value, end))
        });
        // `${{ … }}` of a workflow is not a placeholder.
        let (value, end) = filled.unwrap_or(("{{", after));
        text.push_str(value);
        rest = end;
    }
    text + rest
}

/// Returns a kind in the case of Rust's modules and functions: `TeaRoom` is `tea_room`, and `HTTPRoute` is `http_route`.
pub(crate) fn snake_case(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut name = String::with_capacity(kind.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let follows_word = index > 0 && !letters[index - 1].is_ascii_uppercase();
        // The last upper case letter of an abbreviation begins the next word.
        let ends_abbreviation = index > 0 && letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && (follows_word || ends_abbreviation) {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{fill_template, is_version, plural, snake_case};

    #[test]
    fn kinds_become_names_of_modules() {
        for (kind, expected) in [
            ("Shop", "shop"),
            ("TeaRoom", "tea_room"),
            ("WebSite2", "web_site2"),
            ("HTTPRoute", "http_route"),
            ("SHOP", "shop"),
            ("A", "a"),
        ] {
            assert_eq!(snake_case(kind), expected);
        }
    }

    #[test]
    fn braces_in_values_are_copied() {
        let names = [("a", "{{b}} {{a}}"), ("b", "x"), ("unused", "y")];
        for (template, expected) in [
            ("{{a}}-{{b}}", "{{b}} {{a}}-x"),
            ("${{ b }} {{b}} {{c}} {{", "${{ b }} x {{c}} {{"),
            ("f({ {{b}}, 1 })", "f({ x, 1 })"),
        ] {
            assert_eq!(fill_template(template, &names), expected);
        }
    }

    #[test]
    fn plural_is_formed_as_by_kube_derive() {
        for (singular, expected) in [
            ("teahouse", "teahouses"),
            ("class", "classes"),
            ("batch", "batches"),
            ("policy", "policies"),
            ("gateway", "gateways"),
            ("web2y", "web2ies"),
        ] {
            assert_eq!(plural(singular), expected);
        }
    }

    #[test]
    fn versions_have_the_form_of_kubernetes() {
        for version in ["v1", "v12", "v1alpha1", "v2beta3"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "v", "1", "v0", "v1.0", "v1alpha", "valpha1", "v1gamma1", "V1"] {
            assert!(!is_version(version), "{version}");
        }
    }
}
