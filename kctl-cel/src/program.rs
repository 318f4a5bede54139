//! Errors that cel-go finds when it plans a program: names without a value, and conversions of constants that fail.
//!
//! Upstream: `cel-go/interpreter/planner.go`, `decOptimize` in `interpreter/decorators.go`.

use crate::{
    constant::{Constant, convert},
    large_stack::{depth_of_text, with_large_stack},
    parser,
    tree::{Expr, Item, Node},
};

/// Type names that the checker accepts and the planner does not know.
const NOWHERE: [&str; 2] = ["duration", "timestamp"];

/// Checks that cel-go can plan a program for an expression without type errors.
///
/// cel-go evaluates conversions of constants while it plans, so a rule can fail even if the object never reaches the call:
///
/// ```
/// let error = kctl_cel::instantiate("true || int('a') == 1").unwrap_err();
/// assert_eq!(error, "type conversion error from 'string' to 'int'");
/// assert!(kctl_cel::instantiate("int(self.name) == 1").is_ok());
/// ```
///
/// # Errors
/// The program can't be planned.
pub fn instantiate(expression: &str) -> Result<(), String> {
    with_large_stack(depth_of_text(expression), || match parser::parse(expression) {
        Some(Ok(tree)) => plan(&tree, &mut Vec::new()).map(drop),
        _ => Ok(()),
    })
}

/// Plans a node. Returns its value if it is constant. `declared` holds the variables of the macros around it.
fn plan<'a>(node: &'a Node, declared: &mut Vec<&'a str>) -> Result<Option<Constant>, String> {
    let n_before = declared.len();
    match &node.is {
        Expr::Name(name) if NOWHERE.contains(&name.as_str()) && !declared.contains(&name.as_str()) => {
            return Err(format!("reference to undefined type: {name}"));
        }
        Expr::Call { target: None, name, arguments } if arguments.len() == 1 => {
            let argument = plan(&arguments[0], declared)?;
            return argument.map_or(Ok(None), |argument| convert(name, argument));
        }
        Expr::Call { target: Some(_), name, arguments } if matches!(name.as_str(), "find" | "findAll") => {
            let pattern = arguments.first().map(|pattern| plan(pattern, declared)).transpose()?.flatten();
            if let Some(Constant::Text(pattern)) = pattern {
                crate::pattern(&pattern).map_err(|why| format!("`{pattern}` is not a regular expression: {why}"))?;
            }
        }
        Expr::Loop { declared: names, .. } => declared.extend(names.iter().map(String::as_str)),
        _ => {}
    }
    let mut is_constant = true;
    for part in node.parts() {
        is_constant &= plan(part, declared)?.is_some();
    }
    declared.truncate(n_before);
    Ok(constant(node).filter(|_| is_constant))
}

/// Returns the value of a node whose children are constant, if that makes the node constant.
fn constant(node: &Node) -> Option<Constant> {
    let is_required = |item: &Item| !item.is_optional;
    Some(match &node.is {
        Expr::Null => Constant::Other("null_type"),
        Expr::Bool => Constant::Other("bool"),
        Expr::Int(number) => Constant::Int(*number),
        Expr::Uint(number) => Constant::Uint(*number),
        Expr::Double(number) => Constant::Double(*number),
        Expr::Text(text) => Constant::Text(text.clone()),
        Expr::Bytes(bytes) => Constant::Bytes(bytes.clone()),
        Expr::List(items) if items.iter().all(is_required) => Constant::Other("list"),
        Expr::Map(entries) if entries.iter().all(|(_, value)| is_required(value)) => Constant::Other("map"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_converted_before_there_is_a_value() {
        let error = |to: &str| Err(format!("type conversion error from 'string' to '{to}'"));
        for (expression, expected) in [
            ("int('a') == 1 || true", error("int")),
            ("self.hosts.all(x, int(dyn('a')) == 1)", error("int")),
            ("int(string(' 1')) == 1", error("int")),
            // `string(1000000.0)` is `1e+06`.
            ("int(string(1000000.0)) == 1", error("int")),
            ("int(string(100000.0)) == 1", Ok(())),
            ("int('9223372036854775808') == 1", error("int")),
            ("int('-1') == 1", Ok(())),
            ("uint('+1') == 1u", error("uint")),
            ("double('1e400') == 1.0", error("double")),
            ("double('inf') == double('1_0.0')", Ok(())),
            ("bool('tRUE')", error("bool")),
            ("bool('T')", Ok(())),
            ("int(self.name) == 1", Ok(())),
            ("int(1e19) == 1", Err("integer overflow".into())),
            ("int(dyn(18446744073709551615u)) == 1", Err("integer overflow".into())),
            ("uint(-1) == 1u || true", Err("unsigned integer overflow".into())),
            ("uint(double('NaN')) == 1u", Err("unsigned integer overflow".into())),
            ("string(b'\\xff') == 'x'", Err("invalid UTF-8 in bytes, cannot convert to string".into())),
            ("string(b'\\303\\251') == 'é'", Ok(())),
            ("int(dyn(null)) == 1", Err("no such overload: int(null_type)".into())),
            ("double(dyn({'a': [1]})) == 1.0", Err("no such overload: double(map)".into())),
            ("double(dyn({'a': [self.n]})) == 1.0", Ok(())),
            ("int(string(bytes('é'))) == 1", error("int")),
            ("int(string(duration('1h'))) == 1", error("int")),
            ("timestamp(dyn(253402300800)) == timestamp(0)", Err("timestamp overflow".into())),
            ("self.name.find('[') == ''", Err("`[` is not a regular expression: unclosed character class".into())),
            ("self.name.find(self.name) == '['", Ok(())),
            ("type(self.since) == timestamp", Err("reference to undefined type: timestamp".into())),
            ("self.hosts.all(duration, duration == 'a')", Ok(())),
        ] {
            assert_eq!(instantiate(expression), expected, "{expression}");
        }
    }
}
