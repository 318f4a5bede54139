//! Names of operations, tags and descriptions (`k8s.io/apiserver/pkg/endpoints/openapi`).

/// Returns a name in camel case: the parts between dots, dashes and colons joined, each after the first with a capital
/// letter.
fn identifier(text: &str) -> String {
    let mut parts = text.split(['.', '-', ':']);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &capital(part))
}

/// Returns a word with an upper-case first letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The group and version of a path such as `apis/apps/v1`.
///
/// Tags and operation ids are derived from it.
struct PathGroup<'a> {
    /// The group without `.k8s.io`, or `core`; `None` for paths outside of `/api` and `/apis`.
    group: Option<&'a str>,
    /// The version; `None` for the path of a whole group.
    version: Option<&'a str>,
    /// The first segment, such as `apis`.
    first: &'a str,
}

impl<'a> PathGroup<'a> {
    /// Splits a path.
    fn parse(root: &'a str) -> Self {
        let mut parts = root.split('/');
        let first = parts.next().unwrap_or_default();
        let group = match first {
            "api" => Some("core"),
            "apis" => parts.next().map(|group| group.strip_suffix(".k8s.io").unwrap_or(group)),
            _ => None,
        };
        Self { group, version: group.and(parts.next()), first }
    }
}

/// Returns the tag of the operations of a group and version: `apps_v1` for `apis/apps/v1`.
///
/// The first letter remains lowercase.
pub(super) fn tag(root: &str) -> String {
    let PathGroup { group, version, first } = PathGroup::parse(root);
    let parts = [Some(group.unwrap_or(first)), version].into_iter().flatten();
    parts.map(identifier).collect::<Vec<_>>().join("_")
}

/// Returns an `operationId`: `readCoreV1NamespacedPod` for the verb `read` and `NamespacedPod` under `api/v1`.
///
/// Generators of clients name their methods after it, so it must not change.
pub(super) fn operation(root: &str, verb: &str, rest: &str) -> String {
    let PathGroup { group, version, .. } = PathGroup::parse(root);
    let parts = [group.unwrap_or_default(), version.unwrap_or_default(), rest];
    format!("{verb}{}", parts.map(|part| capital(&identifier(part))).concat())
}

/// Returns a kind with its article, as in a sentence. Plural names get none.
pub(super) fn with_article(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let begins_with_vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if begins_with_vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_ids_and_tags_match_upstream() {
        for (root, expected, expected_tag) in [
            ("api/v1", "readCoreV1NamespacedPod", "core_v1"),
            ("apis/rbac.authorization.k8s.io/v1", "readRbacAuthorizationV1NamespacedPod", "rbacAuthorization_v1"),
            ("apis/shop.example.com/v1beta1", "readShopExampleComV1beta1NamespacedPod", "shopExampleCom_v1beta1"),
            ("apis/apps", "readAppsNamespacedPod", "apps"),
            ("apis", "readNamespacedPod", "apis"),
            ("version", "readNamespacedPod", "version"),
        ] {
            assert_eq!(
                (operation(root, "read", "NamespacedPod").as_str(), tag(root).as_str()),
                (expected, expected_tag)
            );
        }
    }

    #[test]
    fn kinds_get_an_article_unless_plural() {
        let kinds = ["Pod", "Event", "Endpoints", "IngressClass", "APIService"];
        assert_eq!(kinds.map(with_article), ["a Pod", "an Event", "Endpoints", "an IngressClass", "an APIService"]);
    }
}
