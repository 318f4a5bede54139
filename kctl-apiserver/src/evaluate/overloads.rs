//! Checks at run time that an overload accepts the argument types, for arguments that the type checker left as `dyn`.
//!
//! Upstream: `matchesRuntimeSignature` in `common/decls/decls.go` of `cel-go`, and `IsAssignableRuntimeType` in
//! `common/types/types.go`, which checks only the first item of a list.
//!
//! The type checker (`kctl-cel`) rejects wrong types in expressions with a known schema. Values of
//! type `dyn`, such as objects in admission policies without type information, are only known here.

use std::borrow::Cow;

use kctl_cel::{CallStyle, Type};
use kube_cel::cel::Value as Cel;

use super::{NO_OVERLOAD, Target, type_name};

/// Returns the `no such overload` error if no overload of a function accepts the values; `None` if one does or the
/// function is unknown.
///
/// Functions of a library are looked up by their qualified name, such as `math.greatest`. The error
/// lists the types of the arguments.
pub(super) fn overload_error(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<String> {
    let first = target.value();
    let name = match target {
        Target::Library(library) => Cow::Owned(format!("{library}.{name}")),
        Target::Value(_) | Target::None => Cow::Borrowed(name),
    };
    let values = || first.into_iter().chain(arguments);
    let n_given = arguments.len() + usize::from(first.is_some());
    let takes = |form: &[Type]| form.len() == n_given && form.iter().zip(values()).all(|(is, value)| fits(is, value));
    let style = if first.is_some() { CallStyle::Method } else { CallStyle::Function };
    if kctl_cel::forms(&name, style)?.any(takes) {
        return None;
    }
    Some(format!("{NO_OVERLOAD}: {name}({})", values().map(type_name).collect::<Vec<_>>().join(", ")))
}

/// Returns `true` if a value is of a declared type. Type parameters fit any value. Only the first item of a list is
/// checked, as in upstream.
fn fits(is: &Type, value: &Cel) -> bool {
    match (is, value) {
        (Type::Dyn | Type::Any | Type::Error | Type::Param(_), _)
        | (Type::Null, Cel::Null)
        | (Type::Bool, Cel::Bool(_))
        | (Type::Int, Cel::Int(_))
        | (Type::Uint, Cel::UInt(_))
        | (Type::Double, Cel::Float(_))
        | (Type::Text, Cel::String(_))
        | (Type::Bytes, Cel::Bytes(_))
        | (Type::Duration, Cel::Duration(_))
        | (Type::Timestamp, Cel::Timestamp(_))
        // This evaluator represents authorizer values as maps.
        | (Type::Object(_), Cel::Map(_)) => true,
        (Type::Kind(_), Cel::Map(_)) => type_name(value) == "type",
        (Type::Map(..), Cel::Map(_)) => type_name(value) == "map",
        (Type::List(item_type), Cel::List(items)) => items.first().is_none_or(|item| fits(item_type, item)),
        (Type::Optional(_), Cel::Opaque(_)) => type_name(value) == "optional_type",
        (Type::Object(name), Cel::Opaque(_)) => type_name(value) == **name,
        _ => false,
    }
}
