//! Fields of type `Option`: `None` is left out of what is written. API servers accept null only where the schema says so, and never
//! beside a list of allowed values; a field that is missing means the same to serde.

use syn::{Attribute, Field, GenericArgument, PathArguments, Type, meta::ParseNestedMeta, parse_quote};

use super::json::Json;

/// Types of which the schema surely has no list of allowed values.
const PLAIN: [&str; 18] = [
    "String", "bool", "char", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
    "Vec", "BTreeMap", "HashMap",
];
/// Options of serde by which a field is written or read in a way of its own.
const OWN_WAY: [&str; 7] =
    ["skip", "skip_serializing", "skip_serializing_if", "skip_deserializing", "flatten", "with", "serialize_with"];

/// What is written of a field that is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoneIs {
    /// What serde writes.
    Written,
    /// Nothing.
    LeftOut,
    /// Nothing, and the type may have a list of allowed values.
    LeftOutOfChoice,
}

impl NoneIs {
    /// What becomes of `None` in a named field of a type with these attributes.
    pub(super) fn of(field: &Field, container: &[Attribute]) -> Self {
        let Some(value) = value_of(&field.ty).filter(|_| field.ident.is_some()) else { return Self::Written };
        // Another value than `None` may be the default of a field that is missing.
        if options(container).iter().any(|(name, _)| ["default", "transparent"].contains(&name.as_str())) {
            return Self::Written;
        }
        let own = options(&field.attrs);
        let has = |name: &str| own.iter().any(|(known, _)| known == name);
        let has_default_of_its_own = own.iter().any(|(name, has_value)| name == "default" && *has_value);
        let must_be_there = has("deserialize_with") && !has("default");
        if OWN_WAY.iter().any(|name| has(name)) || has_default_of_its_own || must_be_there || is_required(&field.attrs)
        {
            return Self::Written;
        }
        let is_plain = matches!(value, Type::Path(path) if path.path.segments.last().is_some_and(|last| PLAIN.iter().any(|name| last.ident == name)));
        if is_plain { Self::LeftOut } else { Self::LeftOutOfChoice }
    }

    /// Adds the attribute of serde, and the mark by which the schema of allowed values loses its null. Marks of the field may say
    /// that null is something of its own.
    pub(super) fn apply(self, marks: &mut Vec<(String, Json)>, attributes: &mut Vec<Attribute>) {
        let find = |name: &str| marks.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        // With a default, an API server would fill in what is missing.
        if self == Self::Written || find("nullable") == Some(&Json::Bool(true)) || find("default").is_some() {
            return;
        }
        attributes.push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
        if self == Self::LeftOutOfChoice || find("allowed").is_some() {
            marks.push(("omitted".to_owned(), Json::Bool(true)));
        }
    }
}

/// `T` of `Option<T>`.
fn value_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            GenericArgument::Type(value) if arguments.args.len() == 1 => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The options of `#[serde(…)]`, and whether each one has a value.
fn options(attributes: &[Attribute]) -> Vec<(String, bool)> {
    named(attributes, "serde")
}

fn is_required(attributes: &[Attribute]) -> bool {
    named(attributes, "schemars").iter().any(|(name, _)| name == "required")
}

fn named(attributes: &[Attribute], of: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(of)) {
        let read = attribute.parse_nested_meta(|meta: ParseNestedMeta<'_>| {
            let has_value = meta.input.peek(syn::Token![=]);
            if has_value {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            found.push((meta.path.get_ident().map(ToString::to_string).unwrap_or_default(), has_value));
            Ok(())
        });
        if read.is_err() {
            // The derive says what is wrong with it.
            found.push(("with".to_owned(), true));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use syn::{DeriveInput, parse_quote};

    use super::*;

    fn first(input: &DeriveInput) -> NoneIs {
        let syn::Data::Struct(data) = &input.data else { panic!("a struct") };
        NoneIs::of(data.fields.iter().next().unwrap(), &input.attrs)
    }

    #[expect(clippy::too_many_lines, reason = "a table of cases, one struct each")]
    #[test]
    fn none_is_left_out_unless_serde_writes_or_reads_it_another_way() {
        let cases: [(DeriveInput, NoneIs); 14] = [
            (
                parse_quote!(
                    struct A {
                        a: Option<String>,
                    }
                ),
                NoneIs::LeftOut,
            ),
            (
                parse_quote!(
                    struct A {
                        a: std::option::Option<Mode>,
                    }
                ),
                NoneIs::LeftOutOfChoice,
            ),
            (
                parse_quote!(
                    struct A {
                        a: String,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        a: Vec<Option<Mode>>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A(Option<Mode>);
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(default)]
                        a: Option<Mode>,
                    }
                ),
                NoneIs::LeftOutOfChoice,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(rename = "b", alias = "c")]
                        a: Option<i32>,
                    }
                ),
                NoneIs::LeftOut,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(default = "three")]
                        a: Option<i32>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(with = "humantime")]
                        a: Option<Wait>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(deserialize_with = "read")]
                        a: Option<i32>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(default, deserialize_with = "read")]
                        a: Option<i32>,
                    }
                ),
                NoneIs::LeftOut,
            ),
            (
                parse_quote!(
                    struct A {
                        #[serde(skip_serializing_if = "f")]
                        a: Option<i32>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    #[serde(default)]
                    struct A {
                        a: Option<i32>,
                    }
                ),
                NoneIs::Written,
            ),
            (
                parse_quote!(
                    struct A {
                        #[schemars(required)]
                        a: Option<i32>,
                    }
                ),
                NoneIs::Written,
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(first(&input), expected, "{input:?}");
        }
    }
}
