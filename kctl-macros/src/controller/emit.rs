//! `Model` → tokens: one function for each emitted item; nothing can fail here.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use super::check::{Form, Model, Relation};

/// What `owns = T` grants without parentheses.
const OWNED_VERBS: [&str; 5] = ["create", "update", "patch", "apply", "delete"];

pub(super) fn emit(model: &Model, item: &TokenStream) -> TokenStream {
    let krate = &model.krate;
    let marker = (model.form == Form::Function).then(|| marker(model));
    let primary = &model.primary;
    let controller = controller(model);
    let reconcile = reconcile(model);
    let kinds = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, kind) = (format_ident!("__K{index}"), &relation.kind);
        quote!(type #alias = #kind;)
    });
    let grants = model.relations.iter().enumerate().map(|(index, relation)| grants(model, index, relation));
    let primary_grant = primary_grant(model);
    let allows = (model.form == Form::Function).then(
        || quote!(#[allow(clippy::unused_async, reason = "a reconcile function is async, whether it waits or not")]),
    );
    quote! {
        #allows
        #item
        #marker
        const _: () = {
            use #krate::__private as __p;
            type __Primary = #primary;
            #(#kinds)*
            #controller
            #reconcile
            #primary_grant
            #(#grants)*
        };
    }
}

/// The type that stands for a function: it lives in the type namespace only, so the function stays callable.
fn marker(model: &Model) -> TokenStream {
    let (docs, vis, name) = (&model.docs, &model.vis, &model.name);
    quote! {
        #(#docs)*
        #[allow(non_camel_case_types, reason = "it has the name of its function")]
        #vis struct #name {}
    }
}

fn controller(model: &Model) -> TokenStream {
    let name = &model.name;
    let text = name.to_string();
    let calls = &model.calls;
    let relations = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, role, text, calls) = (format_ident!("__K{index}"), &relation.role, &relation.text, &relation.calls);
        quote!(.relation(__p::Relation::<__Primary, #alias>::#role(#text)#(#calls)*))
    });
    let finalize = model.finalizer.then(|| {
        quote! {
            fn finalize_fn() -> ::core::option::Option<__p::FinalizeFn<Self>> {
                ::core::option::Option::Some(__p::finalize_fn::<Self>())
            }
        }
    });
    quote! {
        impl __p::Controller for #name {
            type Primary = __Primary;
            type Grant = __Grant;
            fn spec() -> __p::ControllerSpec {
                #[allow(unused_imports, reason = "which one is used depends on the kind")]
                use __p::{HasCrd as _, HasSchema as _, NoCrd as _, WithStatus as _, WithoutStatus as _};
                let probe = __p::CrdProbe::<__Primary>::NEW;
                __p::SpecBuilder::<__Primary>::new(#text, ::core::file!(), ::core::line!())
                    .crd((&&probe).crd(), (&&probe).has_status())
                    .schema((&&probe).schema())
                    #(#calls)*
                    #(#relations)*
                    .build()
            }
            #finalize
        }
    }
}

fn reconcile(model: &Model) -> TokenStream {
    let name = &model.name;
    if model.form == Form::Struct {
        return quote! {
            const _: fn() = || {
                fn is_reconcile<C: __p::Reconcile>() {}
                is_reconcile::<#name>();
            };
        };
    }
    quote! {
        impl __p::Reconcile for #name {
            async fn reconcile(&self, object: __p::Arc<__Primary>, cx: __p::Context<Self>) -> __p::Result<__p::Action> {
                #name(object, cx).await
            }
        }
        impl __p::FunctionController for #name {
            fn instance() -> Self { Self {} }
        }
    }
}

fn primary_grant(model: &Model) -> TokenStream {
    let name = &model.name;
    let verbs = with_contained(model.primary_verbs.clone());
    quote! {
        pub struct __Grant;
        impl __p::Caches<__Primary> for #name { const SEAL: __p::Seal = __p::Seal; }
        #(impl __p::Allows<__p::verb::#verbs, #name, __Primary> for __Grant { const SEAL: __p::Seal = __p::Seal; })*
    }
}

fn grants(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let name = &model.name;
    let (kind, grant) = (format_ident!("__K{index}"), format_ident!("__G{index}"));
    let seal = quote!(
        const SEAL: __p::Seal = __p::Seal;
    );
    let reads = match relation.role.to_string().as_str() {
        "live" | "live_cluster" => quote!(ReadsLive),
        _ => quote!(Caches),
    };
    let owns = relation.role == "owns";
    let declares = if owns { quote!(Declares) } else { quote!(Writes) };
    let verbs = if owns && relation.verbs.is_empty() {
        OWNED_VERBS.iter().map(|verb| format_ident!("{verb}")).collect()
    } else {
        with_contained(relation.verbs.clone())
    };
    quote! {
        pub struct #grant;
        impl __p::#reads<#kind> for #name { #seal }
        impl __p::#declares<#kind> for #name { type Grant = #grant; #seal }
        #(impl __p::Allows<__p::verb::#verbs, #name, #kind> for #grant { #seal })*
    }
}

/// The verbs with what they contain: `apply` is patch and create.
fn with_contained(mut verbs: Vec<Ident>) -> Vec<Ident> {
    if verbs.iter().any(|verb| verb == "apply") {
        verbs.extend([format_ident!("patch"), format_ident!("create")]);
    }
    verbs.sort();
    verbs.dedup();
    verbs
}
