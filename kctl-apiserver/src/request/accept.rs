//! The `Accept` header: media types in the order in which they are tried (`goautoneg`, and `negotiate.go` of
//! `k8s.io/apiserver`).
//!
//! The caller tries the clauses one by one, and takes the first that it can serve for the request. A clause may select
//! a table, a partial object, or a form of the object itself. If none fits, the client gets 406.
//!
//! ```text
//! Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.9
//! ```

/// A clause of the header: one form that the client accepts.
pub(crate) struct Clause<'a> {
    /// The media type, which may have wildcards.
    pub(crate) media: &'a str,
    /// All parameters, including `q`, as `NAME=VALUE` in the order of the header.
    parameters: Vec<&'a str>,
    /// The weight `q`; 1 by default. A weight that is not a number counts as 1, and 0 does not exclude the type.
    quality: f32,
}

impl<'a> Clause<'a> {
    /// Parses a clause. Spaces around the separators are allowed. Names and values are compared exactly, upper-case
    /// letters included.
    fn read(text: &'a str) -> Self {
        let mut pieces = text.split(';').map(str::trim);
        let media = pieces.next().unwrap_or_default();
        let parameters: Vec<&str> = pieces.collect();
        let quality = parameters.iter().find_map(|parameter| parameter.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        Self { media, parameters, quality }
    }

    /// Returns the value of a parameter, or the empty string. The server reads `as`, `v` and `g`, which request a Table
    /// or a `PartialObjectMetadata`, and `stream`.
    pub(crate) fn parameter(&self, name: &str) -> &'a str {
        let value = |parameter: &&'a str| parameter.strip_prefix(name)?.strip_prefix('=');
        self.parameters.iter().find_map(value).unwrap_or_default()
    }

    /// Returns `true` if the clause has this parameter and value. `parameter` has the form `as=Table`.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        self.parameters.contains(&parameter)
    }

    /// Returns `true` if objects can be written in this media type. Protobuf and CBOR are not supported: clients that
    /// prefer them name JSON as the second choice.
    pub(crate) fn is_known(&self) -> bool {
        let is_named = ["application/json", "application/yaml", "application/*", "*/*", "*"].contains(&self.media);
        is_named && self.has_valid_stream_parameter()
    }

    /// Returns `true` if the clause has no `stream` parameter, or the value for watches.
    pub(crate) fn has_valid_stream_parameter(&self) -> bool {
        ["", "watch"].contains(&self.parameter("stream"))
    }

    /// Returns `true` if go-restful's router accepts the clause for one of these types. It does not expand
    /// `application/*`. `forms` are media types, separated by a comma and a space. It is used where the router answers
    /// before the negotiation of `k8s.io/apiserver` begins.
    pub(crate) fn is_routed(&self, forms: &str) -> bool {
        self.media == "*/*" || forms.split(", ").any(|form| form == self.media)
    }

    /// Returns `true` if the answer is YAML. Every other known media type, with wildcards too, is answered with JSON.
    pub(crate) fn is_yaml(&self) -> bool {
        self.media == "application/yaml"
    }
}

/// Returns the clauses of an `Accept` header by descending quality, and exact media types before wildcards. Clauses of
/// the same weight and as many wildcards keep the order of the header. An empty header has no clauses.
pub(crate) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let named = header.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut clauses: Vec<Clause<'_>> = named.map(Clause::read).collect();
    // Exact types come before wildcards.
    let stars = |clause: &Clause<'_>| clause.media.matches('*').count();
    clauses.sort_by(|left, right| right.quality.total_cmp(&left.quality).then(stars(left).cmp(&stars(right))));
    clauses
}

/// Returns `true` if errors should be YAML. The first clause in which an error can be written decides. A client that
/// wants a Table gets errors as an ordinary `Status`, which has no rows.
pub(crate) fn errors_are_yaml(header: &str) -> bool {
    clauses(header)
        .iter()
        .find(|clause| clause.is_known() && clause.parameter("as").is_empty())
        .is_some_and(Clause::is_yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_ordered_by_quality_then_precision() {
        for (header, expected) in [
            ("", &[][..]),
            ("application/json;q=0.1, application/yaml;q=0.9", &["application/yaml", "application/json"]),
            ("*/*,application/*,a/b", &["a/b", "application/*", "*/*"]),
            ("a/b;as=Table;v=v1,application/json", &["a/b", "application/json"]),
        ] {
            let found: Vec<&str> = clauses(header).iter().map(|clause| clause.media).collect();
            assert_eq!(found, expected, "{header}");
        }
        assert!(errors_are_yaml("application/yaml;as=Table;v=v1;g=meta.k8s.io,application/yaml"));
        assert!(!errors_are_yaml("application/yaml;as=Table;v=v1;g=meta.k8s.io"));
    }
}
