//! The version of Kubernetes that the embedded API server imitates. The generator of the data writes it.

/// Returns the version, such as `1.37.2`.
pub(crate) fn kubernetes() -> &'static str {
    include_str!("../data/version.txt").trim_end()
}

/// Returns the number of the minor version, such as 37.
pub(crate) fn minor() -> u32 {
    let minor = kubernetes().split('.').nth(1).and_then(|minor| minor.parse().ok());
    minor.expect("the generator writes a version of three numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_equals_the_pinned_kubernetes_module() {
        let go_mod = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/envtest/go.mod");
        let go_mod = std::fs::read_to_string(go_mod).unwrap();
        assert!(
            go_mod.contains(&format!("k8s.io/kubernetes v{}\n", kubernetes())),
            "run kctl-apiserver/data/generate.py"
        );
        assert!(kubernetes().starts_with(&format!("1.{}.", minor())));
    }
}
