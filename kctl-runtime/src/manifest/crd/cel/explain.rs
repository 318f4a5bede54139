//! Translates an issue of the CEL compiler into a problem and its remedy.
//!
//! cel-go reports overloads: `found no matching overload for '_+_' applied to '(string, int)'`. Authors of rules know
//! fields and values, so the message here says that `+` does not go with string and int, and names the conversion.

use kctl_cel::{Environment, IssueKind, Type};

/// Returns the problem and the remedy.
pub(super) fn explain(kind: &IssueKind, environment: &Environment) -> (String, String) {
    match kind {
        IssueKind::Undeclared { name, is_function: true } => {
            (format!("unknown function `{name}`"), "see the CEL functions of Kubernetes".into())
        }
        IssueKind::Undeclared { name, .. } => {
            (format!("unknown variable `{name}`"), format!("write `self.{name}`, if it is a field"))
        }
        IssueKind::UndefinedField { operand, field } => {
            let fields: Vec<&str> = environment.fields(operand).collect();
            let help = if fields.is_empty() {
                "the type has no fields".into()
            } else {
                format!("the fields are {}", fields.join(", "))
            };
            (format!("unknown field `{field}`"), help)
        }
        IssueKind::NoFields { operand, field } => (
            format!("`{field}` of a value of type {}, which has no fields", name(operand)),
            "use a field of an object or a map".into(),
        ),
        IssueKind::NoOverload { function, arguments } => {
            let types: Vec<String> = arguments.iter().map(name).collect();
            let what = match types.as_slice() {
                [] => format!("`{}` needs an argument", operator_text(function)),
                types => format!("`{}` does not go with {}", operator_text(function), types.join(" and ")),
            };
            (what, "compare values of one type: `int(…)`, `string(…)` and `double(…)` convert".into())
        }
        IssueKind::Mismatch { expected: Type::Bool, found } => {
            (format!("a value of type {} where something is true or not", name(found)), "compare something".into())
        }
        IssueKind::Mismatch { expected: Type::Optional(expected), found } if **expected == *found => {
            (format!("`?` before a value of type {}", name(found)), "leave out `?`, or write an optional value".into())
        }
        IssueKind::Mismatch { expected, found } => {
            (format!("{} next to {}", name(found), name(expected)), "write values of one type, or `dyn(…)`".into())
        }
        IssueKind::NoRange { operand } => {
            (format!("a value of type {} has no items", name(operand)), "go through a list or a map".into())
        }
        IssueKind::Literal { function, text } => {
            let what = match function.as_str() {
                "matches" => {
                    let why = kctl_cel::pattern(text).err().unwrap_or_default();
                    format!("`{text}` is not a regular expression: {why}")
                }
                "timestamp" => format!("`{text}` is not a timestamp"),
                _ if text.is_empty() => "a number is not a duration".to_owned(),
                _ => format!("`{text}` is not a duration"),
            };
            (what, "write for example `^[a-z]+$`, `2030-01-01T00:00:00Z` or `1h30m`".into())
        }
        other => (other.to_string(), "see the CEL of Kubernetes".into()),
    }
}

/// Returns the name of a type for messages.
pub(super) fn name(ty: &Type) -> String {
    match ty {
        Type::Dyn | Type::Error | Type::Param(_) => "any".into(),
        Type::List(ty) => format!("list of {}", name(ty)),
        Type::Map(key, value) => format!("map of {} to {}", name(key), name(value)),
        Type::Optional(ty) => format!("optional {}", name(ty)),
        Type::Kind(_) => "type".into(),
        // Types of schemas have generated names. Types of the CEL libraries have a group.
        Type::Object(name) => match name.rsplit_once('.') {
            Some(("kubernetes" | "net", last)) => last.into(),
            _ => "object".into(),
        },
        other => other.to_string(),
    }
}

/// Returns an operator as it is written, such as `in` for `@in`.
fn operator_text(function: &str) -> &str {
    match function {
        "_?_:_" => "? :",
        "_[_]" => "[ ]",
        "_[?_]" => "[? ]",
        "@in" => "in",
        name => name.trim_matches('_'),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(rule: &str, expected: &str) {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "port": { "type": "object", "properties": { "number": { "type": "integer" } } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        } });
        let environment = Environment::for_rule(&schema, kctl_cel::SchemaOf::Value, kctl_cel::OldSelf::Value).unwrap();
        let issues = kctl_cel::type_of(rule, &environment).unwrap_err();
        let messages: Vec<String> = issues
            .iter()
            .map(|issue| {
                let (what, help) = explain(&issue.kind, &environment);
                format!("{what}; {help}")
            })
            .collect();
        assert_eq!(messages.join("\n"), expected, "{rule}");
    }

    #[test]
    fn mistakes_are_reported_with_a_fix() {
        check("self.port.nam == 1", "unknown field `nam`; the fields are number");
        check(
            "self.name.first == 1",
            "`first` of a value of type string, which has no fields; use a field of an object or a map",
        );
        check("name == 'a'", "unknown variable `name`; write `self.name`, if it is a field");
        check("self.name.isLong()", "unknown function `isLong`; see the CEL functions of Kubernetes");
        let convert = "compare values of one type: `int(…)`, `string(…)` and `double(…)` convert";
        check(
            "self.port == self.labels",
            &format!("`==` does not go with object and map of string to string; {convert}"),
        );
        check("quantity('1') == ip('a')", &format!("`==` does not go with Quantity and IP; {convert}"));
        check("quantity(1) == ip('a')", &format!("`quantity` does not go with int; {convert}"));
        check("self.name && true", "a value of type string where something is true or not; compare something");
        check("[1, self.name] == []", "string next to int; write values of one type, or `dyn(…)`");
        check("[?1] == []", "`?` before a value of type int; leave out `?`, or write an optional value");
        check("self.name.all(c, true)", "a value of type string has no items; go through a list or a map");
        let write = "write for example `^[a-z]+$`, `2030-01-01T00:00:00Z` or `1h30m`";
        check(
            "self.name.matches('a**')",
            &format!("`a**` is not a regular expression: `*` after another repetition; {write}"),
        );
        check("timestamp('now') == null", &format!("`now` is not a timestamp; {write}"));
        check("self.loop == 1 || loop", "reserved identifier: loop; see the CEL of Kubernetes");
    }
}
