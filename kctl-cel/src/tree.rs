//! An expression as a tree whose nodes know their places, with macros as they were written: what the parser makes and the checker
//! reads.

#[derive(Debug)]
pub(crate) struct Node {
    /// Where messages about it point, in letters from the beginning.
    pub(crate) at: usize,
    pub(crate) is: Part,
}

#[derive(Debug)]
pub(crate) enum Part {
    Null,
    Bool,
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Name(String),
    Select {
        of: Box<Node>,
        field: String,
        is_optional: bool,
    },
    Has {
        of: Box<Node>,
        field: String,
    },
    Call {
        target: Option<Box<Node>>,
        name: String,
        arguments: Vec<Node>,
    },
    List(Vec<Item>),
    Map(Vec<(Item, Item)>),
    Message {
        name: String,
        fields: Vec<(String, Item)>,
    },
    /// A macro with the names that it declares.
    Loop {
        over: Box<Node>,
        name: String,
        declared: Vec<String>,
        arguments: Vec<Node>,
    },
}

/// What may be left out, and where messages about it point.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) at: usize,
    pub(crate) is_optional: bool,
    pub(crate) node: Node,
}

impl Node {
    /// What it is made of, in the order in which it is written.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match &self.is {
            Part::Select { of, .. } | Part::Has { of, .. } => vec![of],
            Part::Call { target, arguments, .. } => target.as_deref().into_iter().chain(arguments).collect(),
            Part::List(items) => items.iter().map(|item| &item.node).collect(),
            Part::Map(entries) => entries.iter().flat_map(|(key, value)| [&key.node, &value.node]).collect(),
            Part::Message { fields, .. } => fields.iter().map(|(_, item)| &item.node).collect(),
            Part::Loop { over, arguments, .. } => [&**over].into_iter().chain(arguments).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a variable is named somewhere in it.
    pub(crate) fn names(&self, variable: &str) -> bool {
        matches!(&self.is, Part::Name(name) if name == variable)
            || self.parts().into_iter().any(|part| part.names(variable))
    }
}

/// `a.b.c`, where a node is that.
pub(crate) fn qualified(node: &Node) -> Option<String> {
    match &node.is {
        Part::Name(name) => Some(name.clone()),
        Part::Select { of, field, is_optional: false } => Some(format!("{}.{field}", qualified(of)?)),
        _ => None,
    }
}
