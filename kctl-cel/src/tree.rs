//! The syntax tree of an expression, with the position of each node and with macros as they were written.

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node {
    /// Position that messages about it point to, in characters from the start. For an operator or a call it is the
    /// position of the operator or the parenthesis, as in cel-go.
    pub(crate) at: usize,
    pub(crate) is: Expr,
}

/// The kind of a node, with its operands.
///
/// Numbers and strings keep their values, because literals such as `duration('1h')` are checked.
#[derive(Debug)]
pub(crate) enum Expr {
    /// `null`.
    Null,
    /// `true` or `false`; no check depends on which.
    Bool,
    /// An integer, with its sign.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number, with its sign.
    Double(f64),
    /// A string, without quotes and escapes.
    Text(String),
    /// A bytes literal.
    Bytes(Vec<u8>),
    /// An identifier.
    Name(String),
    /// `of.field`, or `of.?field`.
    Select { operand: Box<Node>, field: String, is_optional: bool },
    /// `has(of.field)`.
    Has { operand: Box<Node>, field: String },
    /// A call, or an operator under its name in cel-go, such as `_+_`.
    Call {
        /// The receiver of a method.
        target: Option<Box<Node>>,
        name: String,
        arguments: Vec<Node>,
    },
    /// A list literal.
    List(Vec<Item>),
    /// A map literal; `is_optional` applies to the value.
    Map(Vec<(Item, Item)>),
    /// A constructed object: `Object{field: value}`.
    Message { name: String, fields: Vec<(String, Item)> },
    /// A macro with the names that it declares.
    Loop { over: Box<Node>, name: String, declared: Vec<String>, arguments: Vec<Node> },
}

/// An item, key or value of a literal. `is_optional` is for `?value`, which is left out if it has no value.
#[derive(Debug)]
pub(crate) struct Item {
    /// Position that messages about its type point to.
    pub(crate) at: usize,
    /// `true` for `?value`, whose type has to be optional.
    pub(crate) is_optional: bool,
    pub(crate) node: Node,
}

impl Node {
    /// Returns the direct children, in the order in which they are written.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match &self.is {
            Expr::Select { operand, .. } | Expr::Has { operand, .. } => vec![operand],
            Expr::Call { target, arguments, .. } => target.as_deref().into_iter().chain(arguments).collect(),
            Expr::List(items) => items.iter().map(|item| &item.node).collect(),
            Expr::Map(entries) => entries.iter().flat_map(|(key, value)| [&key.node, &value.node]).collect(),
            Expr::Message { fields, .. } => fields.iter().map(|(_, item)| &item.node).collect(),
            Expr::Loop { over, arguments, .. } => [&**over].into_iter().chain(arguments).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns `true` if an identifier of this name occurs in it.
    pub(crate) fn names(&self, variable: &str) -> bool {
        matches!(&self.is, Expr::Name(name) if name == variable)
            || self.parts().into_iter().any(|part| part.names(variable))
    }
}

/// Returns the name `a.b.c` if the node consists of identifiers and dots only.
pub(crate) fn qualified_name(node: &Node) -> Option<String> {
    match &node.is {
        Expr::Name(name) => Some(name.clone()),
        Expr::Select { operand, field, is_optional: false } => Some(format!("{}.{field}", qualified_name(operand)?)),
        _ => None,
    }
}
