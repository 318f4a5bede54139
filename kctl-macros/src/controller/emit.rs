//! `Model` → tokens: one function for each emitted item; nothing can fail here.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, Ident, Type, spanned::Spanned};

use super::check::{Form, Model, Relation};

/// What `owns = T` grants without parentheses.
const OWNED_VERBS: [&str; 5] = ["create", "update", "patch", "apply", "delete"];

pub(super) fn emit(model: &Model, item: &TokenStream) -> TokenStream {
    let krate = &model.krate;
    let marker = (model.form == Form::Function).then(|| marker(model));
    let primary = primary_kind(model);
    let primary_type = kind(&primary, &model.primary);
    let controller = controller(model);
    let reconcile = reconcile(model);
    let kinds =
        model.relations.iter().enumerate().map(|(index, relation)| kind(&alias(index, relation), &relation.kind));
    let clusters = model.relations.iter().enumerate().filter_map(|(index, relation)| cluster(index, relation));
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
            #primary_type
            #(#kinds)*
            #(#clusters)*
            #controller
            #reconcile
            #primary_grant
            #(#grants)*
        };
    }
}

fn kind(alias: &Ident, ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> type #alias = #ty;)
}

/// The primary, with the place where the user names it.
fn primary_kind(model: &Model) -> Ident {
    format_ident!("__Primary", span = model.primary.span())
}

/// A related kind, with the place where the user names it.
fn alias(index: usize, relation: &Relation) -> Ident {
    format_ident!("__K{index}", span = relation.kind.span())
}

/// The type that names the cluster of a relation, with the place where the user names it.
fn cluster(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (path, alias) = (relation.cluster()?, cluster_alias(index, relation)?);
    Some(quote_spanned!(path.span()=> type #alias = #path;))
}

fn cluster_alias(index: usize, relation: &Relation) -> Option<Ident> {
    relation.cluster().map(|path| format_ident!("__M{index}", span = path.span()))
}

/// In which cluster a relation is; the builder puts what is owned beside the primary.
fn on(index: usize, relation: &Relation) -> Option<TokenStream> {
    if let Some(alias) = cluster_alias(index, relation) {
        return Some(quote_spanned!(alias.span()=> .on_cluster::<#alias>()));
    }
    let on = relation.on.as_ref().filter(|_| relation.role != "owns")?;
    Some(quote!(.on(#on)))
}

fn primary_on(on: &Expr) -> TokenStream {
    match on {
        Expr::Path(cluster) => {
            let name = quote_spanned!(cluster.span()=> <#cluster as __p::Cluster>::NAME);
            quote!(.primary_on(#name))
        }
        text => quote!(.primary_on(#text)),
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
    let (primary, calls) = (primary_kind(model), &model.calls);
    let relations = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, text, calls) = (alias(index, relation), &relation.text, &relation.calls);
        let role = Ident::new(&relation.role.to_string(), relation.kind.span());
        let mut text = Literal::string(text);
        text.set_span(relation.kind.span());
        let new = quote_spanned!(relation.kind.span()=> __p::Relation::<Self, #alias>::#role(#text));
        let on = on(index, relation);
        quote!(.relation(#new #(#calls)* #on))
    });
    let primary_on = model.primary_on.as_ref().map(primary_on);
    let finalize = model.finalizer.as_ref().map(|word| {
        let finalize = quote_spanned!(word.span()=> __p::finalize_fn::<Self>);
        quote! {
            fn finalize_fn() -> ::core::option::Option<__p::FinalizeFn<Self>> {
                ::core::option::Option::Some(#finalize())
            }
        }
    });
    let declares_finalizer = finalize.is_some().then(|| quote!(impl __p::DeclaresFinalizer for #name {}));
    quote! {
        impl __p::Controller for #name {
            type Primary = #primary;
            type Grant = __Grant;
            fn spec() -> __p::ControllerSpec {
                __p::spec_of!(#primary, #text)
                    #(#calls)*
                    #primary_on
                    #(#relations)*
                    .build()
            }
            #finalize
        }
        #declares_finalizer
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
    let primary = primary_kind(model);
    let (cx_span, result_span) = model.signature.unwrap_or((name.span(), name.span()));
    let (cx, callee) = (Ident::new("cx", cx_span), Ident::new(&name.to_string(), result_span));
    let call = quote_spanned!(result_span=> #callee(object, #cx).await);
    let object = Ident::new("object", result_span);
    quote! {
        impl __p::Reconcile for #name {
            async fn reconcile(&self, #object: __p::Arc<#primary>, #cx: __p::Context<Self>) -> __p::Result<__p::Action> {
                #call
            }
        }
        impl __p::FunctionController for #name {
            fn instance() -> Self { Self {} }
        }
    }
}

fn primary_grant(model: &Model) -> TokenStream {
    let (name, primary) = (&model.name, primary_kind(model));
    let verbs = with_contained(model.primary_verbs.clone());
    let owns = model.relations.iter().any(|relation| relation.role == "owns");
    let undeclared = (!owns).then(|| quote!(__p::owns_nothing!(#name);));
    let writes = model.relations.iter().any(|relation| relation.role != "owns" && relation.cluster().is_none());
    let unwritten = (!writes).then(|| quote!(__p::writes_nothing!(#name);));
    let status =
        (!model.read_only).then(|| quote!(impl __p::WritesStatus for #name { const SEAL: __p::Seal = __p::Seal; }));
    quote! {
        impl __p::Whole for #name {}
        pub struct __Grant;
        #status
        impl __p::Caches<#primary> for #name { const SEAL: __p::Seal = __p::Seal; }
        __p::allows!(__Grant, #name, #primary: #(#verbs)*);
        #undeclared
        #unwritten
    }
}

fn grants(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let name = &model.name;
    let (kind, grant) = (alias(index, relation), format_ident!("__G{index}"));
    let seal = quote!(
        const SEAL: __p::Seal = __p::Seal;
    );
    let reads = match relation.role.to_string().as_str() {
        "live" | "live_cluster" => "ReadsLive",
        _ => "Caches",
    };
    let owns = relation.role == "owns";
    let declares = if owns { "Declares" } else { "Writes" };
    let on = cluster_alias(index, relation);
    let suffix = if on.is_some() { "On" } else { "" };
    let on = on.map(|on| quote!(#on,));
    let permission = |name: &str| {
        let name = format_ident!("{name}{suffix}");
        quote!(__p::#name<#on #kind>)
    };
    let (reads, declares) = (permission(reads), permission(declares));
    let verbs = if owns && relation.verbs.is_empty() {
        OWNED_VERBS.iter().map(|verb| format_ident!("{verb}")).collect()
    } else {
        with_contained(relation.verbs.clone())
    };
    quote! {
        pub struct #grant;
        impl #reads for #name { #seal }
        impl #declares for #name { type Grant = #grant; #seal }
        __p::allows!(#grant, #name, #kind: #(#verbs)*);
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
