//! Names of finalizers: those that API servers refuse, and those that several controllers may come to share.

use super::ControllerSpec;

/// The longest name, and the longest part before its `/` (`k8s.io/apimachinery`, `IsQualifiedName`).
const NAME_LEN_MAX: usize = 63;
const PREFIX_LEN_MAX: usize = 253;
/// Groups of built-in kinds whose finalizers need a `/` (`pkg/apis/core/validation`, `ValidateFinalizerName`, as kube-apiserver 1.36
/// answers). Kinds of other groups take names without one, such as Leases and custom resources.
const QUALIFIED: [&str; 5] = ["", "apps", "autoscaling", "batch", "rbac.authorization.k8s.io"];

/// Says why API servers would refuse the finalizer of a controller, and what to write.
pub fn finalizer_problem(spec: &ControllerSpec) -> Option<(String, String)> {
    let finalizer = spec.finalizer.as_deref()?;
    let help = "write `finalizer = \"example.com/name\"`".to_owned();
    if !is_qualified_name(finalizer) {
        let allowed =
            format!("at most {NAME_LEN_MAX} letters, digits, `-`, `_` and `.`, after a domain in lower case and `/`");
        return Some((format!("the finalizer `{finalizer}` is not a name that API servers take: {allowed}"), help));
    }
    let kind = &spec.primary.kind;
    let needs_domain = !finalizer.contains('/') && QUALIFIED.contains(&kind.group.as_str());
    needs_domain
        .then(|| (format!("API servers refuse the finalizer `{finalizer}` on a {kind}: it has no domain"), help))
}

/// Says why a finalizer that API servers take is better another one.
pub fn finalizer_warning(spec: &ControllerSpec) -> Option<String> {
    let finalizer = spec.finalizer.as_deref().filter(|finalizer| !finalizer.contains('/'))?;
    Some(format!(
        "the finalizer `{finalizer}` has no domain: another controller may use the same name; prefer `example.com/{finalizer}` unless \
         objects have it already"
    ))
}

fn is_qualified_name(text: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_name =
        |name: &str, max: usize| name.len() <= max && is_end(name.chars().next()) && is_end(name.chars().next_back());
    let is_label = |label: &str| {
        is_name(label, PREFIX_LEN_MAX)
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| prefix.len() <= PREFIX_LEN_MAX && prefix.split('.').all(is_label))
        && is_name(name, NAME_LEN_MAX)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_are_those_of_the_api_server() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        for (name, expected) in [
            ("example.com/a", true),
            ("example/a", true),
            ("mycleanup", true),
            ("my.cleanup", true),
            ("MyCleanup_x", true),
            (&longest, true),
            (&too_long, false),
            ("Example.com/a", false),
            ("example.com/a/b", false),
            ("example.com/", false),
            ("/a", false),
            ("a b", false),
            ("-a", false),
            ("", false),
        ] {
            assert_eq!(is_qualified_name(name), expected, "{name:?}");
        }
    }
}
