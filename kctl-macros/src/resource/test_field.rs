//! Tests: the messages of a check of one field.

use syn::{Attribute, Data, DeriveInput, Field};

use super::{marker::Markers, markers::take_markers};
use crate::diagnostics::Errors;

/// Returns the messages of a check about the first field of a struct.
///
/// The check gets the field, the attributes of the struct, and the markers of the field.
pub(super) fn collect_messages(
    source: &str,
    check: impl FnOnce(&Field, &[Attribute], &Markers, &mut Errors),
) -> String {
    let mut input: DeriveInput = syn::parse_str(source).unwrap();
    let Data::Struct(data) = &mut input.data else { panic!("a struct") };
    let field = data.fields.iter_mut().next().unwrap();
    let mut errors = Errors::default();
    let markers = take_markers(&mut field.attrs, &mut errors);
    check(field, &input.attrs, &markers, &mut errors);
    errors.into_result(()).err().map(|error| error.to_string()).unwrap_or_default()
}
