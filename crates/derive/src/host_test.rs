//! `#[corsair_host::test]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, LitBool, LitInt};

/// Returns a test that runs the simulation in a separate process.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut seeds = quote!(1);
    let mut first_seed = quote!(1);
    let mut deterministic = quote!(false);
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("seeds") {
            let value: LitInt = meta.value()?.parse()?;
            if value.base10_parse::<u64>()? == 0 {
                return Err(syn::Error::new_spanned(
                    value,
                    "a test without seeds cannot fail; expected at least 1",
                ));
            }
            seeds = quote!(#value);
        } else if meta.path.is_ident("first_seed") {
            let value: LitInt = meta.value()?.parse()?;
            first_seed = quote!(#value);
        } else if meta.path.is_ident("deterministic") {
            let value: LitBool = meta.value()?.parse()?;
            deterministic = quote!(#value);
        } else {
            return Err(meta.error("expected `seeds`, `first_seed` or `deterministic`"));
        }
        Ok(())
    });
    syn::parse::Parser::parse2(parser, attribute)?;
    let function: ItemFn = syn::parse2(item)?;
    if function.sig.inputs.len() != 1 {
        return Err(syn::Error::new_spanned(
            &function.sig,
            "a simulation test takes one argument: `sim: &mut Sim`",
        ));
    }
    let (name, attributes) = (&function.sig.ident, &function.attrs);
    let mut body = function.clone();
    body.attrs.clear();
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        fn #name() {
            #body
            ::corsair_host::run_test(
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
                ::corsair_host::Options {
                    seeds: #seeds,
                    first_seed: #first_seed,
                    deterministic: #deterministic,
                },
                #name,
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_at_least_one_seed() {
        let test = || {
            quote!(
                fn survives(sim: &mut Sim) {}
            )
        };
        assert!(expand(quote!(seeds = 1), test()).is_ok());
        let error = expand(quote!(seeds = 0), test()).unwrap_err();
        assert!(error.to_string().contains("at least 1"), "{error}");
    }
}
