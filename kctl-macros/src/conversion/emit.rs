//! `ConversionFn` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[conversion]
//! fn up(old: v1alpha1::Web) -> Result<v1::Web> { … }
//! ```
//!
//! becomes the function itself, and in addition
//!
//! ```text
//! struct up {}
//! const _: () = {
//!     use ::kctl::conversion::__private_0_1 as __p;
//!     type __From = v1alpha1::Web;
//!     type __To = v1::Web;
//!     impl __p::Converts for up {
//!         fn rules() -> __p::Vec<__p::Rule> {
//!             let (from, to) = (__p::CrdProbe::<__From>::NEW, __p::CrdProbe::<__To>::NEW);
//!             let about = __p::FunctionInfo::new("up", file!(), line!());
//!             …
//!             __p::Vec::from([__p::Rule::new::<__From, __To, _, _>(about, |object| async move { … }).with_definitions(from, to)])
//!         }
//!     }
//! };
//! ```

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{ATTRIBUTE, check::ConversionFn};
use crate::{
    function::local_name,
    registered_function::{Registration, alias_name, probe_imports, type_alias},
};

/// Emits the function, its type and the implementation of `Converts`. Duplicates are found when the app starts.
pub(super) fn emit(model: &ConversionFn, item: &TokenStream) -> TokenStream {
    let (from, to) = (type_alias("__From", &model.from), type_alias("__To", &model.to));
    let registration = Registration {
        guard: TokenStream::new(),
        items: quote!(#from #to),
        types: TokenStream::new(),
        body: rules(model),
    };
    ATTRIBUTE.emit(&model.krate, &model.head, &registration, item)
}

/// Emits the body of `rules()`. The call has the span of the return type, so that rustc shows a wrong type there. A
/// function without `Result` is wrapped in `Ok`.
fn rules(model: &ConversionFn) -> TokenStream {
    let (from, to) = (alias_name("__From", &model.from), alias_name("__To", &model.to));
    let (imports, text, callee) = (probe_imports(), model.head.text(), model.head.callee());
    let wait = model.head.is_async.then(|| quote_spanned!(model.head.result=> .await));
    // The span of the call: in a function of `macro_rules`, a name with another span would be another variable.
    let object = local_name("object", &model.head.name, model.head.result);
    let call = quote_spanned!(model.head.result=> #callee(#object)#wait);
    let call = if model.is_fallible {
        quote_spanned!(model.head.result=> #call.map_err(__p::failed))
    } else {
        quote!(__p::Ok(#call))
    };
    let new = quote_spanned!(model.from.span()=> __p::Rule::new::<#from, #to, _, _>);
    // A function that is called `from` is not hidden by variables of this span.
    quote_spanned! {Span::mixed_site()=>
        #imports
        let (from, to) = (__p::CrdProbe::<#from>::NEW, __p::CrdProbe::<#to>::NEW);
        let about = __p::FunctionInfo::new(#text, ::core::file!(), ::core::line!());
        let from = __p::Definition { crd: (&&from).crd(), schema: (&&from).schema() };
        let to = __p::Definition { crd: (&&to).crd(), schema: (&&to).schema() };
        __p::Vec::from([#new(about, |#object| async move { #call }).with_definitions(from, to)])
    }
}
