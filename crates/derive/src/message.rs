//! Derives the implementation of `Message` for a type.

mod attributes;
#[cfg(test)]
mod tests;

use attributes::{AttributeTarget, Attributes};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, Result, Type, parse_quote};

/// Returns the implementation, or the first error in the input.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let generics = &input.generics;
    if let Some(lifetime) = generics.lifetimes().next() {
        return Err(Error::new(
            lifetime.span(),
            "a message outlives the actor that sends it, so it must own its data; \
             remove the lifetime, for example with `String` or `Arc<str>` instead of `&str`",
        ));
    }
    let (container, forms) = match &input.data {
        Data::Struct(data) => {
            let container = Attributes::read(&input.attrs, AttributeTarget::Struct)?;
            let name = container.kind_or(&input.ident);
            let form = Form::new(quote!(Self), name, &container, &data.fields)?;
            (container, vec![form])
        }
        Data::Enum(data) => {
            let container = Attributes::read(&input.attrs, AttributeTarget::Enum)?;
            let forms = data.variants.iter().map(|variant| {
                let attributes = Attributes::read(&variant.attrs, AttributeTarget::Variant)?;
                let (name, ident) = (attributes.kind_or(&variant.ident), &variant.ident);
                Form::new(quote!(Self::#ident), name, &attributes, &variant.fields)
            });
            (container, forms.collect::<Result<_>>()?)
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "a union does not record which of its fields is valid; make the message an enum, or \
                 implement `corsair::Message` by hand",
            ));
        }
    };

    let (names, kinds) = kinds(&forms);
    let kind = if forms.is_empty() {
        quote!(match *self {})
    } else {
        let patterns = forms.iter().map(|form| &form.path);
        quote!(match self { #(#patterns { .. } => #kinds,)* })
    };
    let fingerprint = match &container.fingerprint {
        _ if container.skip => quote!(0),
        Some(function) => quote!(#function(self)),
        None if forms.is_empty() => quote!(match *self {}),
        None => {
            let arms = forms.iter().enumerate().map(|(index, form)| {
                let shared = kinds[..index].iter().filter(|kind| **kind == kinds[index]);
                form.arm(shared.count() as u64)
            });
            quote!(match self { #(#arms)* })
        }
    };

    let duplicate = container.duplicate.then(|| {
        quote! {
            const DUPLICATES: bool = true;

            #[inline]
            fn duplicate(&self) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(::core::clone::Clone::clone(self))
            }
        }
    });
    let hashed = !container.skip && container.fingerprint.is_none();
    let generics = bounded(generics.clone(), hashed);
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::corsair::Message for #ident #arguments #bounds {
            const KINDS: &'static [&'static str] = &[#(#names),*];

            #[inline]
            fn kind(&self) -> usize {
                #kind
            }

            #[inline]
            fn fingerprint(&self) -> u64 {
                #fingerprint
            }

            #duplicate
        }
    })
}

/// Returns the names of the kinds in order of appearance, and the index of each form's kind in this list.
fn kinds(forms: &[Form<'_>]) -> (Vec<String>, Vec<usize>) {
    let mut names: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    for form in forms {
        kinds.push(
            names
                .iter()
                .position(|name| *name == form.kind)
                .unwrap_or_else(|| {
                    names.push(form.kind.clone());
                    names.len() - 1
                }),
        );
    }
    (names, kinds)
}

/// Adds to a type's parameters the bounds that the implementation needs.
fn bounded(mut generics: Generics, hashed: bool) -> Generics {
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::core::marker::Send));
            parameter.bounds.push(parse_quote!('static));
            if hashed {
                parameter.bounds.push(parse_quote!(::core::hash::Hash));
            }
        }
    }
    generics
}

/// A struct, or a variant of an enum.
struct Form<'a> {
    /// The pattern that matches the form.
    path: TokenStream,
    /// The name of the form's kind.
    kind: String,
    /// The fields that enter the fingerprint.
    fields: Vec<Field<'a>>,
}

/// A field that enters the fingerprint.
struct Field<'a> {
    /// The name or the index of the field.
    member: syn::Member,
    ty: &'a Type,
    /// The function that turns the field into a number, instead of `Hash`.
    function: Option<syn::Path>,
}

impl<'a> Form<'a> {
    fn new(
        path: TokenStream,
        kind: String,
        attributes: &Attributes,
        fields: &'a Fields,
    ) -> Result<Form<'a>> {
        let mut used = Vec::new();
        for (member, field) in fields.members().zip(fields) {
            let own = Attributes::read(&field.attrs, AttributeTarget::Field)?;
            if !own.skip && !attributes.skip {
                used.push(Field {
                    member,
                    ty: &field.ty,
                    function: own.fingerprint,
                });
            }
        }
        Ok(Form {
            path,
            kind,
            fields: used,
        })
    }

    /// Returns the match arm that computes the fingerprint. `shared` is the number of preceding
    /// forms of the same kind.
    fn arm(&self, shared: u64) -> TokenStream {
        let path = &self.path;
        if self.fields.is_empty() && shared == 0 {
            return quote!(#path { .. } => 0,);
        }
        let mut pattern = TokenStream::new();
        let mut writes = TokenStream::new();
        if shared > 0 {
            let mark = 1 << 63 | shared;
            writes.extend(quote!(::core::hash::Hasher::write_u64(&mut fingerprint, #mark);));
        }
        for (index, field) in self.fields.iter().enumerate() {
            let (member, name) = (&field.member, format_ident!("field_{index}"));
            pattern.extend(quote!(#member: #name,));
            writes.extend(field.write(&name));
        }
        quote! {
            #path { #pattern .. } => {
                let mut fingerprint = ::corsair::Fingerprint::new();
                #writes
                ::core::hash::Hasher::finish(&fingerprint)
            }
        }
    }
}

impl Field<'_> {
    /// Writes the code that adds the field to the fingerprint.
    fn write(&self, name: &syn::Ident) -> TokenStream {
        match &self.function {
            Some(function) => {
                quote_spanned!(function.span()=> ::core::hash::Hasher::write_u64(&mut fingerprint, #function(#name));)
            }
            // Floating-point numbers are not `Hash`.
            None if is_float(self.ty) => {
                quote!(::core::hash::Hash::hash(&#name.to_bits(), &mut fingerprint);)
            }
            None => {
                quote_spanned!(self.ty.span()=> ::core::hash::Hash::hash(#name, &mut fingerprint);)
            }
        }
    }
}

fn is_float(ty: &Type) -> bool {
    matches!(ty, Type::Path(ty) if ty.path.is_ident("f32") || ty.path.is_ident("f64"))
}
