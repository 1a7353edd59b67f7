//! Derives the implementation of `Plain` for a type.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Result, parse_quote};

/// The maximum number of variants of an enum, because one byte identifies the variant.
const MOST_VARIANTS: usize = 256;

/// Returns the implementation, or the first error in the input.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    if let Some(lifetime) = generics.lifetimes().next() {
        return Err(Error::new(
            lifetime.lifetime.span(),
            "plain data must own its contents; remove the lifetime",
        ));
    }
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::corsair::Plain));
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let (size, write, read) = match &input.data {
        Data::Struct(data) => {
            let form = Form::new(&quote!(Self), &data.fields);
            let Form {
                size,
                pattern,
                write,
                read,
            } = form;
            let write = quote!(let #pattern = self; #write let _ = to;);
            (size, write, read)
        }
        Data::Enum(data) if data.variants.len() > MOST_VARIANTS => {
            return Err(Error::new(
                ident.span(),
                "plain data has at most 256 variants; move groups of variants to separate enums",
            ));
        }
        Data::Enum(data) => {
            let (mut sizes, mut writes, mut reads) = (Vec::new(), Vec::new(), Vec::new());
            for (tag, variant) in data.variants.iter().enumerate() {
                let (tag, name) = (tag as u8, &variant.ident);
                let Form {
                    size,
                    pattern,
                    write,
                    read,
                } = Form::new(&quote!(Self::#name), &variant.fields);
                sizes.push(size);
                writes.push(quote!(#pattern => { *tag = #tag; #write to.fill(0); }));
                reads.push(quote!(#tag => { #read }));
            }
            let size = quote! {{
                let mut most = 0;
                #(let size = #sizes; if size > most { most = size; })*
                1 + most
            }};
            let write = if writes.is_empty() {
                quote!(let _ = to; match *self {})
            } else {
                quote! {
                    let (tag, to) = to[..<Self as ::corsair::Plain>::SIZE].split_at_mut(1);
                    let tag = &mut tag[0];
                    match self { #(#writes)* }
                }
            };
            let read = quote! {
                let (tag, from) = from.split_first()?;
                match *tag { #(#reads)* _ => ::core::option::Option::None }
            };
            (size, write, read)
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "a union does not record which of its fields is valid; make it an enum, or implement `corsair::Plain` by hand",
            ));
        }
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::corsair::Plain for #ident #arguments #bounds {
            const SIZE: usize = #size;

            #[inline]
            fn write_to(&self, to: &mut [u8]) {
                #write
            }

            #[inline]
            fn read_from(from: &[u8]) -> ::core::option::Option<Self> {
                #read
            }
        }
    })
}

/// A struct, or a variant of an enum.
struct Form {
    /// The sum of the sizes of all fields.
    size: TokenStream,
    /// The pattern that destructures the form.
    pattern: TokenStream,
    /// The code that writes the fields one after the other to `to`, and advances `to` past them.
    write: TokenStream,
    /// The code that reads a value from `from`.
    read: TokenStream,
}

impl Form {
    fn new(path: &TokenStream, fields: &Fields) -> Form {
        let names: Vec<_> = (0..fields.len())
            .map(|index| format_ident!("field_{index}"))
            .collect();
        let members: Vec<_> = fields.members().collect();
        let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
        Form {
            size: quote!(0 #(+ <#types as ::corsair::Plain>::SIZE)*),
            pattern: quote!(#path { #(#members: #names),* }),
            write: quote! {
                #(
                    let (bytes, to) = to.split_at_mut(<#types as ::corsair::Plain>::SIZE);
                    ::corsair::Plain::write_to(#names, bytes);
                )*
            },
            read: quote! {
                #(
                    let (bytes, from) = from.split_at_checked(<#types as ::corsair::Plain>::SIZE)?;
                    let #names = <#types as ::corsair::Plain>::read_from(bytes)?;
                )*
                let _ = from;
                ::core::option::Option::Some(#path { #(#members: #names),* })
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(input: &DeriveInput) -> String {
        match expand(input) {
            Ok(tokens) => panic!("it was accepted: {tokens}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_has_no_size_of_its_own_is_refused() {
        let text = refusal(&parse_quote!(union Word { a: u32, b: f32 }));
        assert!(text.contains("make it an enum"), "{text}");
        let text = refusal(&parse_quote!(
            struct Word<'a>(&'a str);
        ));
        assert!(text.contains("remove the lifetime"), "{text}");
    }

    #[test]
    fn more_variants_than_a_byte_tells_apart_are_refused() {
        let variants = |count: usize| {
            let names = (0..count).map(|index| format_ident!("V{index}"));
            let input: DeriveInput = parse_quote!(enum Word { #(#names),* });
            expand(&input)
        };
        assert!(variants(256).is_ok());
        let error = variants(257).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("256 variants"), "{error}");
    }
}
