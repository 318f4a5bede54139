//! The order of the versions of a group.

/// Returns the sort key of a version: stable above beta above alpha, then by number
/// (`k8s.io/apimachinery/pkg/version/helpers.go`). A version of another form comes last, by name.
pub(super) fn version_order(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let unknown = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return unknown() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let Ok(major) = major.parse() else { return unknown() };
    let (rank, minor) = match stage {
        "" => return (3, major, 0, std::cmp::Reverse(String::new())),
        stage => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return unknown(),
        },
    };
    minor.parse().map_or_else(|_| unknown(), |minor| (rank, major, minor, std::cmp::Reverse(String::new())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_kubernetes_version_priority() {
        let mut versions = ["v1alpha1", "foo", "v10", "v2beta1", "v1", "v2beta2", "v11alpha2"].map(str::to_owned);
        versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        assert_eq!(versions, ["v10", "v1", "v2beta2", "v2beta1", "v11alpha2", "v1alpha1", "foo"]);
    }
}
