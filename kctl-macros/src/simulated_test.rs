//! `#[kctl::test(seeds = 64)]`: a function that returns a scenario becomes a test that simulates it.
//!
//! ```text
//! #[kctl::test(seeds = 8)]
//! fn survives(scenario: Scenario) -> Scenario { scenario.step(…) }
//! ```
//!
//! becomes
//!
//! ```text
//! #[test]
//! fn survives() {
//!     fn __describe_scenario(scenario: Scenario) -> Scenario { scenario.step(…) }
//!     let scenario: ::kctl::testing::Scenario = __describe_scenario(Default::default());
//!     let test = ::kctl::testing::SimulatedTest {
//!         package: env!("CARGO_PKG_NAME"),
//!         program: option_env!("CARGO_BIN_NAME"),
//!         file: file!(),
//!         path: concat!(module_path!(), "::", "survives"),
//!     };
//!     ::kctl::testing::simulate(&scenario, 8u64, &test);
//! }
//! ```
//!
//! The failure message prints a command from these values, which runs one seed again. Errors here have no codes: the
//! attribute is used in tests, and its few mistakes fit into a message.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{ItemFn, LitInt, Safety, parse::Parser, spanned::Spanned};

/// Seeds without the option `seeds`.
const DEFAULT_SEEDS: u64 = 64;

/// The options of the attribute.
struct Options {
    seeds: u64,
    krate: syn::Path,
}

/// Expands `#[kctl::test]`. After a mistake the function is kept, so that its callers still compile.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return emit_error(&error, item),
    };
    match parse(options).and_then(|options| check(&function).map(|()| options)) {
        Ok(options) => emit(&options, &function),
        Err(error) => emit_error(&error, item),
    }
}

/// Emits the error, and the user's item as it is.
fn emit_error(error: &syn::Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote! { #error #item }
}

/// Reads `seeds = 64` and `crate = path`.
fn parse(options: TokenStream) -> syn::Result<Options> {
    let mut options_given: Vec<Option<syn::Ident>> = Vec::new();
    let mut found = Options { seeds: DEFAULT_SEEDS, krate: syn::parse_quote!(::kctl) };
    let parser = syn::meta::parser(|meta| {
        let name = meta.path.get_ident().cloned();
        if options_given.contains(&name) {
            return Err(meta.error("given twice: remove one of them"));
        }
        options_given.push(name);
        if meta.path.is_ident("seeds") {
            let seeds: LitInt = meta.value()?.parse()?;
            found.seeds = seeds.base10_parse()?;
            if found.seeds == 0 {
                return Err(syn::Error::new(seeds.span(), "`seeds = 0` simulates no seed: write `seeds = 1` or more"));
            }
            Ok(())
        } else if meta.path.is_ident("crate") {
            found.krate = meta.value()?.parse()?;
            Ok(())
        } else {
            Err(meta.error("no such option; there are `seeds = 64` and `crate = path`"))
        }
    });
    parser.parse2(options)?;
    Ok(found)
}

/// Checks the signature: a plain function with at most one parameter and a return type. rustc checks the types, at the
/// spans that `emit` sets.
fn check(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if let Some(asynchronous) = &signature.asyncness {
        let text = "a scenario is described, not run: remove `async`; what awaits goes into `.step(…)`";
        return Err(syn::Error::new(asynchronous.span(), text));
    }
    let unsafety = match &signature.safety {
        Safety::Unsafe(word) => Some(word.span()),
        Safety::Safe(_) | Safety::Default => None,
    };
    let constness = signature.constness.as_ref().map(Spanned::span);
    if let Some(modifier) = unsafety.or(constness).or(signature.abi.as_ref().map(Spanned::span)) {
        return Err(syn::Error::new(modifier, "a simulated test is a plain function: remove what is before `fn`"));
    }
    if !signature.generics.params.is_empty() {
        let text = "a simulated test can't be generic, because nothing names the types: write them in its place";
        return Err(syn::Error::new_spanned(&signature.generics, text));
    }
    if signature.inputs.len() > 1 {
        let text = "the only parameter is the scenario to begin with: `fn survives(scenario: Scenario) -> Scenario`";
        return Err(syn::Error::new(signature.inputs.span(), text));
    }
    if matches!(signature.output, syn::ReturnType::Default) {
        let text = "a simulated test returns its scenario: `fn survives(scenario: Scenario) -> Scenario`";
        return Err(syn::Error::new(signature.ident.span(), text));
    }
    Ok(())
}

/// Emits the test. The user's function moves into it, so that the outer function can have the signature of a test. It
/// gets a name that no function has which its body calls.
fn emit(Options { seeds, krate }: &Options, function: &ItemFn) -> TokenStream {
    let (name, vis) = (&function.sig.ident, &function.vis);
    let (attributes, body) = (&function.attrs, &function.block);
    let (inputs, output, bounds) = (&function.sig.inputs, &function.sig.output, &function.sig.generics.where_clause);
    let begin =
        (!inputs.is_empty()).then(|| quote!(<#krate::testing::Scenario as ::core::default::Default>::default()));
    let described = quote_spanned! { function.sig.output.span() =>
        let scenario: #krate::testing::Scenario = __describe_scenario(#begin);
    };
    quote! {
        #(#attributes)*
        #[test]
        #vis fn #name() {
            fn __describe_scenario(#inputs) #output #bounds #body
            #described
            let test = #krate::testing::SimulatedTest {
                package: ::core::env!("CARGO_PKG_NAME"),
                program: ::core::option_env!("CARGO_BIN_NAME"),
                file: ::core::file!(),
                path: ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
            };
            #krate::testing::simulate(&scenario, #seeds, &test);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(options: &str, item: &str) -> String {
        expand(options.parse().unwrap(), &item.parse().unwrap()).to_string()
    }

    #[test]
    fn misuse_gets_help_and_keeps_the_function() {
        let right = "fn survives(scenario: Scenario) -> Scenario { scenario }";
        let cases = [
            ("seeds = many", right, "integer"),
            ("seeds = 0", right, "simulates no seed"),
            ("seeds = 1, seeds = 9", right, "given twice"),
            ("crate = a, seeds = 1, crate = b", right, "given twice"),
            ("speed = 3", right, "no such option; there are `seeds = 64`"),
            ("", "async fn survives(scenario: Scenario) -> Scenario { scenario }", "remove `async`"),
            ("", "unsafe fn survives() -> Scenario { a() }", "remove what is before `fn`"),
            ("", "const fn survives() -> Scenario { A }", "remove what is before `fn`"),
            ("", "extern \"C\" fn survives() -> Scenario { a() }", "remove what is before `fn`"),
            ("", "fn survives<K: Kind>() -> Scenario { a::<K>() }", "can't be generic"),
            ("", "fn survives(scenario: Scenario) { }", "returns its scenario"),
            ("", "fn survives(one: Scenario, two: Scenario) -> Scenario { one }", "the only parameter"),
        ];
        for (options, item, text) in cases {
            let expanded = expanded(options, item);
            assert!(expanded.contains("compile_error") && expanded.contains(text), "{expanded}");
            assert!(expanded.contains("fn survives"), "{expanded}");
        }
    }

    #[test]
    fn visibility_and_where_clause_are_kept() {
        let expanded = expanded("", "pub(crate) fn survives() -> Scenario where String: Clone { describe_scenario() }");
        assert!(expanded.contains("# [test] pub (crate) fn survives ()"), "{expanded}");
        assert!(expanded.contains("-> Scenario where String : Clone { describe_scenario () }"), "{expanded}");
    }

    #[test]
    fn seeds_and_test_name_reach_the_simulator() {
        let expanded = expanded("seeds = 7", "fn survives(scenario: Scenario) -> Scenario { scenario }");
        assert!(expanded.contains("# [test] fn survives ()"), "{expanded}");
        assert!(expanded.contains("7u64") && expanded.contains("stringify ! (survives)"), "{expanded}");
    }
}
