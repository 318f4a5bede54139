//! The built-in types as a table: each field of each type leads to a node by one hash lookup, without reading JSON.
//!
//! There is a node for each use of a type, since keywords such as list types belong to the use and not to the type.
//! Types refer to each other in cycles (JSON schemas), so nodes are linked by index.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;

use super::{BUILT_IN, ListType, Schema};

/// A map with a fast hash. The names are compiled in, so collisions cannot be forced.
type ByName<T> = HashMap<&'static str, T, foldhash::fast::FixedState>;

/// A node: a type, or its use in another type.
#[derive(Debug)]
pub(super) struct SchemaNode {
    /// The cursor at this node, without the node itself.
    schema: Schema<'static>,
    /// The index of the node in the table.
    pub(super) number: usize,
    /// The index of the node of the used type, which has the fields.
    target: usize,
    /// The nodes of declared fields.
    fields: ByName<usize>,
    /// The node of `additionalProperties`.
    additional: Option<usize>,
    /// The node of list items.
    items: Option<usize>,
    /// The name of the type if the node is the type itself; `None` for a use.
    type_of: Option<&'static str>,
    /// The keyword `type`.
    pub(super) type_name: Option<&'static str>,
    /// The keyword `format`.
    pub(super) format: Option<&'static str>,
    /// The short name of the type that is used here, such as `Quantity`.
    pub(super) reference: Option<&'static str>,
    /// Computed once from the extensions.
    pub(super) list_type: ListType<'static>,
    /// The names in `required`.
    pub(super) required: Vec<&'static str>,
}

/// All nodes.
struct Table {
    /// The nodes. A node refers to others by their index. Invariant: `number` of each is its index.
    nodes: Vec<SchemaNode>,
    /// The node of each type.
    types: ByName<usize>,
}

/// The table, which is built at the first use.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let uses: Vec<(Option<&'static str>, &'static Value)> =
        BUILT_IN.types.iter().flat_map(|(name, node)| uses(name, node)).collect();
    let numbers: HashMap<usize, usize, foldhash::fast::FixedState> =
        uses.iter().enumerate().map(|(number, (_, usage))| (address(usage), number)).collect();
    let number_of = |usage: &Value| numbers.get(&address(usage)).copied();
    let types = BUILT_IN.types.iter().filter_map(|(name, node)| Some((name.as_str(), number_of(node)?))).collect();
    debug_assert_eq!(numbers.len(), uses.len(), "no two uses share a value, so an address names one");
    let nodes = uses.iter().enumerate().map(|(number, (type_of, usage))| node(number, *type_of, usage, &number_of));
    Table { nodes: nodes.collect(), types }
});

/// Returns the address of a type's use, which identifies the use.
fn address(usage: &Value) -> usize {
    std::ptr::from_ref(usage).addr()
}

/// Returns a type and all types that it uses.
fn uses(name: &'static str, first: &'static Value) -> Vec<(Option<&'static str>, &'static Value)> {
    let (mut found, mut left) = (Vec::new(), vec![first]);
    while let Some(usage) = left.pop() {
        found.push((std::ptr::eq(usage, first).then_some(name), usage));
        let fields = usage.get("properties").and_then(Value::as_object);
        left.extend(fields.into_iter().flat_map(serde_json::Map::values));
        left.extend(["additionalProperties", "items"].iter().filter_map(|key| usage.get(key)));
    }
    found
}

/// Creates a node.
fn node(
    number: usize,
    type_of: Option<&'static str>,
    usage: &'static Value,
    number_of: &impl Fn(&Value) -> Option<usize>,
) -> SchemaNode {
    let schema = Schema::resolve_ref(usage);
    let properties = usage.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields = properties.filter_map(|(name, field)| Some((name.as_str(), number_of(field)?)));
    let required = schema.node.get("required").and_then(Value::as_array).into_iter().flatten();
    SchemaNode {
        schema,
        number,
        target: number_of(schema.node).unwrap_or(number),
        fields: fields.collect(),
        additional: usage.get("additionalProperties").filter(|node| node.is_object()).and_then(number_of),
        items: usage.get("items").and_then(number_of),
        type_of,
        type_name: schema.text("type"),
        format: schema.text("format"),
        reference: schema.reference(),
        list_type: schema.list_type(),
        required: required.filter_map(Value::as_str).collect(),
    }
}

/// Iterates over all nodes, by index.
pub(super) fn all() -> impl Iterator<Item = Schema<'static>> {
    TABLE.nodes.iter().map(SchemaNode::schema)
}

/// Returns the schema of a type.
pub(super) fn find_schema(name: &str) -> Option<Schema<'static>> {
    TABLE.types.get(name).map(|number| schema_at(*number))
}

/// Returns the schema of a node.
fn schema_at(number: usize) -> Schema<'static> {
    TABLE.nodes[number].schema()
}

impl SchemaNode {
    /// Returns the schema of this node.
    fn schema(&'static self) -> Schema<'static> {
        Schema { built_in_type: Some(self), ..self.schema }
    }

    /// Returns the type that this use refers to.
    fn target(&self) -> &'static Self {
        &TABLE.nodes[self.target]
    }

    /// Returns the name of the type.
    pub(super) fn name(&self) -> Option<&'static str> {
        self.target().type_of
    }

    /// Returns the schema of a declared field.
    pub(super) fn field(&self, name: &str) -> Option<Schema<'static>> {
        self.target().fields.get(name).map(|number| schema_at(*number))
    }

    /// Returns `true` if the type declares fields.
    pub(super) fn has_fields(&self) -> bool {
        !self.target().fields.is_empty()
    }

    /// Returns the schema of map values.
    pub(super) fn additional(&self) -> Option<Schema<'static>> {
        self.target().additional.map(schema_at)
    }

    /// Returns the schema of list items.
    pub(super) fn items(&self) -> Option<Schema<'static>> {
        self.target().items.map(schema_at)
    }
}
