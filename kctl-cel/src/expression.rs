//! The type of an expression, or its validation errors with the positions of cel-go.

use crate::{
    Environment, Issues, Type,
    check::Checker,
    large_stack::{depth_of_text, with_large_stack},
    literals, parser,
    tree::Node,
};

/// Returns the type of an expression, or `None` if this crate's parser does not know its syntax.
///
/// Syntax errors are not reported here: call [`read`](crate::read()) first, which is the parser of the evaluator. Literals are
/// checked only if all types fit, as in cel-go.
///
/// ```
/// use kctl_cel::{Environment, OldSelf, SchemaOf, type_of};
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "properties": { "min": { "type": "integer" } } });
/// let environment = Environment::for_rule(&schema, SchemaOf::Object, OldSelf::Value).unwrap();
/// assert_eq!(type_of("self.min > 1", &environment).unwrap().unwrap().to_string(), "bool");
/// assert_eq!(type_of("self.max > 1", &environment).unwrap_err().to_string(), "1:5: unknown field `max`");
/// ```
///
/// # Errors
/// All type errors, in the order of their positions.
pub fn type_of(expression: &str, environment: &Environment) -> Result<Option<Type>, Issues> {
    with_large_stack(depth_of_text(expression), || parse_and_check(expression, environment))
}

/// Parses and checks on the current stack, which has to be large enough for the depth of the expression.
fn parse_and_check(expression: &str, environment: &Environment) -> Result<Option<Type>, Issues> {
    let Some(tree) = parser::parse(expression) else { return Ok(None) };
    let tree = tree.map_err(|rejected| Issues::new(expression, rejected))?;
    let mut checker = Checker::new(environment);
    let found = checker.check_expression(&tree);
    let mut errors = std::mem::take(&mut checker.errors);
    if errors.is_empty() {
        literals::check(&tree, &checker, &mut errors);
    }
    if errors.is_empty() { Ok(Some(found)) } else { Err(Issues::new(expression, errors)) }
}

/// Returns `true` if an expression uses a variable: not as a field, inside a string literal, or as a part of another identifier.
///
/// API servers evaluate a rule with `oldSelf` only on updates (a transition rule).
///
/// ```
/// assert!(kctl_cel::names("self.n >= oldSelf.n", "oldSelf"));
/// assert!(!kctl_cel::names("self.oldSelf == 'oldSelf'", "oldSelf"));
/// ```
pub fn names(expression: &str, variable: &str) -> bool {
    let names = || parser::parse(expression).and_then(Result::ok).is_some_and(|tree: Node| tree.names(variable));
    with_large_stack(depth_of_text(expression), names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{OldSelf, SchemaOf};

    fn check(expression: &str, expected: Result<&str, &str>) {
        let environment = Environment::default()
            .with("object", Type::Dyn)
            .with("request", Type::Object("kubernetes.AdmissionRequest".into()));
        let found = type_of(expression, &environment);
        let found = found.map(|found| found.map(|found| found.to_string())).map_err(|issues| issues.to_string());
        let expected = expected.map(|name| Some(name.to_owned())).map_err(str::to_owned);
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn expressions_have_the_types_of_cel() {
        check("object.a.b", Ok("dyn"));
        check("request.userInfo.groups", Ok("list(string)"));
        check("[1, 2].map(x, string(x))", Ok("list(string)"));
        check("{'a': [1]}.a[0] + 1", Ok("int"));
        check("object.?a.orValue('b')", Ok("dyn"));
        check("optional.of(1).optMap(x, x + 1)", Ok("optional_type(int)"));
        check("{1: 'a'}.transformMap(k, v, v.size())", Ok("map(int, int)"));
        check("[]", Ok("list(dyn)"));
        check("object.a ? 1 : 2", Ok("int"));
        check("format.uuid().validate('a')", Ok("optional_type(list(string))"));
    }

    fn check_rule(rule: &str, expected: Result<&str, &[&str]>) {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "n": { "type": "integer" },
            "nullable": { "type": "string", "nullable": true },
            "either": { "x-kubernetes-int-or-string": true },
            "since": { "type": "string", "format": "date-time" },
            "hosts": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "ports": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
            "pod": { "type": "object", "x-kubernetes-embedded-resource": true },
            "my-name": { "type": "string" },
            "as": { "type": "string" },
            "anything": { "x-kubernetes-preserve-unknown-fields": true },
        } });
        let old_self = if rule.contains("oldSelf") { OldSelf::Optional } else { OldSelf::Value };
        let environment = Environment::for_rule(&schema, SchemaOf::Value, old_self).unwrap();
        let messages = |issues: Issues| issues.iter().map(|issue| issue.kind.to_string()).collect::<Vec<_>>();
        let found = type_of(rule, &environment).map(|found| found.unwrap().to_string()).map_err(messages);
        let expected = expected.map(str::to_owned).map_err(|all| all.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{rule}");
    }

    #[test]
    fn deep_and_long_expressions_do_not_overflow() {
        // Tests run on threads with 2 MiB of stack, as tasks of Tokio do.
        for open in ["(", "[", "{1:", "f(", "a?a:"] {
            assert!(!names(&open.repeat(200_000), "a"), "{open}");
        }
        assert!(!names(&"a.".repeat(200_000), "a"));
        assert!(names(&format!("{}a{}", "(".repeat(249), ")".repeat(249)), "a"));
        assert!(names(&format!("{}a", "true||".repeat(3_300)), "a"));
        check(&format!("{}true", "true&&".repeat(3_300)), Ok("bool"));
        // Takes quadratic time if each overload copies the bindings of all type parameters.
        check(&format!("1{}", "+1".repeat(3_900)), Ok("int"));
        let environment = Environment::default().with("a", Type::Dyn);
        assert!(type_of(&format!("a{}", " in a".repeat(3_900)), &environment).is_ok());
    }

    #[test]
    fn rules_have_the_types_of_their_schema() {
        check_rule("string(true) == self.name", Ok("bool"));
        check_rule("self.either == 1 || self.either == 'a'", Ok("bool"));
        check_rule("self.hosts.map(host, size(host))[0] + 1", Ok("int"));
        check_rule("self.labels.exists(key, self.labels[key] == 'a')", Ok("bool"));
        check_rule("self.my__dash__name + self.as + self.__as__", Ok("string"));
        check_rule("self.since > timestamp('2020-01-01T00:00:00Z')", Ok("bool"));
        check_rule("self.pod.metadata.name + self.pod.kind", Ok("string"));
        check_rule("self.ports[?0].?n.orValue(1) < 2u", Ok("bool"));
        check_rule("oldSelf.?name.orValue('a')", Ok("string"));
        check_rule("self.ports.sortBy(port, port.n)[0].n", Ok("int"));
        check_rule("self.hosts.transformMapEntry(i, host, {host: i})", Ok("map(string, int)"));
    }

    #[test]
    fn type_errors_follow_the_schema() {
        check_rule("self.nothing == 1 && other", Err(&["unknown field `nothing`", "unknown variable `other`"]));
        check_rule("self.anything == 1", Err(&["unknown field `anything`"]));
        check_rule("self.pod.spec", Err(&["unknown field `spec`"]));
        check_rule("self.nullable == null", Err(&["`_==_` does not accept (string, null)"]));
        check_rule("self.hosts.all(host, host)", Err(&["expected bool, found string"]));
        check_rule("self.name.reverse()", Err(&["`reverse` does not accept (string)"]));
        check_rule("quantity('1').sign()", Err(&["`sign` does not accept (kubernetes.Quantity)"]));
        check_rule("self.name.matches('[')", Err(&["invalid argument of `matches`"]));
    }

    #[test]
    fn macros_declare_names() {
        check_rule("self.hosts.all(i, 1, true)", Err(&["argument must be a simple name"]));
        check_rule("self.hosts.map(void, true)", Err(&["reserved identifier: void", "argument is not an identifier"]));
        check_rule("self.?name.optMap(1, 1)", Err(&["optMap() variable name must be a simple identifier"]));
        check_rule("self.hosts.all(v, v, true)", Err(&["duplicate variable name: v"]));
        check_rule(
            "self.hosts.transformMapEntry(1, 2, true, {'a': 1}, 3)",
            Err(&["unknown function `transformMapEntry`"]),
        );
        check_rule("self.hosts.exists(__result__, true)", Err(&["iteration variable overwrites accumulator variable"]));
        check_rule(
            "'a'.sortBy(x, x)",
            Err(&["sortBy can only be applied to a list, identifier, comprehension, call or select expression"]),
        );
    }

    #[test]
    fn literals_with_mixed_types_are_rejected() {
        check_rule("[self.either, 1]", Err(&["expected dyn, found int"]));
        check_rule("[1, 'a', 2.0]", Err(&["expected int, found string"]));
        check_rule("{1: 1, 'a': 2, 2: 'b'}", Err(&["expected int, found string", "expected int, found string"]));
        check_rule("[[], [1]]", Ok("list(list(int))"));
        check_rule("[?optional.of(1), 2]", Ok("list(int)"));
        check_rule("'%s %d'.format(['a', [1, self.either].size()])", Ok("string"));
    }

    #[test]
    fn format_clauses_accept_their_types_only() {
        check_rule("'%d'.format([self.name])", Err(&["`%d` does not accept string"]));
        check_rule("'%s'.format([[self.?name]])", Err(&["`%s` does not accept optional_type(string)"]));
        check_rule("'%f %e %x %X'.format([1.5, 'NaN', 'a', b'a'])", Ok("string"));
        check_rule("'%.f'.format([1.5])", Err(&["`%.f` has an invalid precision"]));
        check_rule("'%%'.format([1])", Err(&["the string has 0 clauses for 1 arguments"]));
        check_rule("'%s'.format([])", Err(&["`%s` has no argument"]));
    }

    #[test]
    fn variables_are_named_as_themselves() {
        let all = [
            ("oldSelf == self", true),
            ("self.oldSelf == 'oldSelf'", false),
            ("has(oldSelf.a)", true),
            ("oldSelfs", false),
        ];
        for (expression, are_named) in all {
            assert_eq!(names(expression, "oldSelf"), are_named, "{expression}");
        }
    }

    #[test]
    fn errors_point_at_line_and_column() {
        check("1 + 'a'", Err("1:3: `_+_` does not accept (int, string)"));
        check("a && b", Err("1:1: unknown variable `a`; 1:6: unknown variable `b`"));
        check("'é' - 1", Err("1:5: `_-_` does not accept (string, int)"));
        check("\n'a'\n - 1", Err("3:2: `_-_` does not accept (string, int)"));
        check("'日😀' - 1", Err("1:6: `_-_` does not accept (string, int)"));
        check("\tnothing", Err("1:2: unknown variable `nothing`"));
        check("duration('x')", Err("1:10: invalid argument of `duration`"));
        check("request.nothing", Err("1:8: unknown field `nothing`"));
    }
}
