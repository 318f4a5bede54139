//! The `fieldPath` of a CEL rule: resolves `.a['b'].c` against a schema and returns the path as errors report it.
//!
//! Upstream: `ValidFieldPath` in `pkg/apiserver/schema/cel/validation.go` of apiextensions-apiserver.
//!
//! Grammar: steps of `.name` or `['key']`. List indexes are not supported. `rule_validation` rejects a rule whose path
//! does not resolve, and `rules` appends the resolved path to the path of the value.

use serde_json::Value;

use crate::go;

/// Returns the path as errors report it, such as `a.b[key]`; `None` if the schema has no such field.
///
/// Steps go through `properties` if the schema has any, else through `additionalProperties`. The
/// empty path resolves to the empty string. Both notations reach both kinds of fields; the output
/// always shows properties with dots and map keys in brackets.
pub(super) fn resolve(path: &str, schema: &Value) -> Option<String> {
    let mut tokens = Tokens(path);
    let mut schema = schema;
    let mut out = String::new();
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => {
                let key = tokens.next()?.strip_prefix('\'')?.strip_suffix('\'')?;
                let name = go::unquote(key, '\'')?;
                tokens.next().filter(|&token| token == "]")?;
                name
            }
            _ => return None,
        };
        if schema["properties"].as_object().is_some_and(|fields| !fields.is_empty()) {
            out.push_str(if out.is_empty() { "" } else { "." });
            out.push_str(&name);
            schema = schema["properties"].get(&name)?;
        } else {
            schema = schema.get("additionalProperties").filter(|values| !values.is_null())?;
            out.push_str(&format!("[{name}]"));
        }
    }
    Some(out)
}

/// Splits a path into names, quoted keys and the delimiters `.`, `[` and `]`.
///
/// It holds the remaining input. It never fails: malformed input becomes tokens that `resolve` rejects.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let len = match text.as_bytes().first()? {
            b'\'' => quoted_len(text.as_bytes()),
            b'.' | b'[' | b']' => 1,
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(len);
        self.0 = rest;
        Some(token)
    }
}

/// Returns the bytes of a quoted key, including its quotes. An escaped quote does not end it. Without an end quote, the
/// rest is the token, which `resolve` rejects.
fn quoted_len(text: &[u8]) -> usize {
    let end = text.windows(2).position(|pair| pair[1] == b'\'' && pair[0] != b'\\');
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::resolve;

    #[test]
    fn only_field_paths_in_schema_are_valid() {
        let text = json!({"type": "string"});
        let map = json!({"additionalProperties": {"properties": {"a.b": text, "c'd": text}}});
        let schema = json!({"properties": {"map": map, "x": {"properties": {"y": text}}}});
        for (path, expected) in [
            (".map.k['a.b']", Some("map[k].a.b")),
            (r"['map']['k']['c\'d']", Some("map[k].c'd")),
            (".x.y", Some("x.y")),
            ("", Some("")),
            ("x.y", None),
            (" .x", None),
            (".x.", None),
            (".x.z", None),
            (".x['y'", None),
            (".x[y]", None),
            (r"['\q']", None),
            (".x.y.z", None),
        ] {
            assert_eq!(resolve(path, &schema).as_deref(), expected, "{path}");
        }
        assert_eq!(resolve(".k", &map).as_deref(), Some("[k]"), "a key of the value itself");
    }
}
