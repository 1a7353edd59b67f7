//! Derives the implementation of `Kind` for a type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, LitStr, Result, parse_quote};

/// Returns the implementation, or the first error in the input.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let name = name(input)?;
    let mut generics = input.generics.clone();
    if let Some(lifetime) = generics.lifetimes().next() {
        return Err(Error::new(
            lifetime.lifetime.span(),
            "an actor outlives the code that spawns it, so it must own its state; remove the lifetime",
        ));
    }
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::core::clone::Clone));
        parameter.bounds.push(parse_quote!(::core::marker::Send));
        parameter.bounds.push(parse_quote!(::core::marker::Sync));
        parameter.bounds.push(parse_quote!(::serde::Serialize));
        parameter
            .bounds
            .push(parse_quote!(::serde::de::DeserializeOwned));
        parameter.bounds.push(parse_quote!('static));
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::corsair::Kind for #ident #arguments #bounds {
            const NAME: &'static str = #name;
            type Parameters = Self;
            type Local = ();

            #[inline]
            fn make(parameters: &Self, _: &(), _: u32) -> Self {
                ::core::clone::Clone::clone(parameters)
            }

            fn save<S: ::serde::Serializer>(
                &self,
                to: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(self, to)
            }

            fn restore<'de, D: ::serde::Deserializer<'de>>(
                from: D,
                _: &(),
            ) -> ::core::result::Result<Self, D::Error> {
                ::serde::Deserialize::deserialize(from)
            }
        }
    })
}

/// Returns the name in `#[kind(name = "...")]`.
fn name(input: &DeriveInput) -> Result<LitStr> {
    let mut name: Option<LitStr> = None;
    for attribute in &input.attrs {
        if !attribute.path().is_ident("kind") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("a kind has only a name: `#[kind(name = \"...\")]`"));
            }
            if name.is_some() {
                return Err(meta.error("the name is given twice"));
            }
            let given: LitStr = meta.value()?.parse()?;
            if given.value().is_empty() {
                return Err(Error::new(given.span(), "a name is not empty"));
            }
            name = Some(given);
            Ok(())
        })?;
    }
    name.ok_or_else(|| {
        let ident = &input.ident;
        let advice = format!(
            "a kind of actors has a name, which stays the same when the type is renamed: add `#[kind(name = \"{ident}\")]`"
        );
        Error::new(ident.span(), advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(input: DeriveInput) -> std::result::Result<String, String> {
        expand(&input)
            .map(|tokens| tokens.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_kind_has_the_name_that_it_is_given() {
        let text = derived(parse_quote! {
            #[kind(name = "purse")]
            struct Purse { coins: u32 }
        });
        assert!(text.is_ok_and(|text| text.contains("const NAME : & 'static str = \"purse\"")));
    }

    #[test]
    fn a_kind_without_a_name_is_refused() {
        let error = derived(parse_quote! { struct Purse; });
        assert!(error.is_err_and(|error| error.contains("#[kind(name = \"Purse\")]")));
    }

    #[test]
    fn what_a_kind_does_not_have_is_refused() {
        let wrong: [DeriveInput; 4] = [
            parse_quote! { #[kind(name = "")] struct Purse; },
            parse_quote! { #[kind(name = "a", name = "b")] struct Purse; },
            parse_quote! { #[kind(nmae = "a")] struct Purse; },
            parse_quote! { #[kind(name = "a")] struct Purse<'a>(&'a str); },
        ];
        for input in wrong {
            assert!(derived(input).is_err());
        }
    }
}
