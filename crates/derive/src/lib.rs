//! `#[derive(Message)]`, `#[derive(Kind)]` and `#[derive(Plain)]` of [`corsair`](../corsair/index.html), which re-exports it.
#![forbid(unsafe_code)]

mod host_test;
mod kind;
mod message;
mod plain;

use proc_macro::TokenStream;

/// Implements [`Message`](../corsair/trait.Message.html). Each variant gets a kind with the variant's name, and the
/// fingerprint covers all fields. The trait's documentation describes the attributes.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    message::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Implements [`Kind`](../corsair/trait.Kind.html) for an actor's state that is plain data. The attribute `#[kind(name
/// = "...")]` sets the name of the kind.
#[proc_macro_derive(Kind, attributes(kind))]
pub fn derive_kind(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    kind::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Implements [`Plain`](../corsair/trait.Plain.html) for a struct or an enum of plain fields.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    plain::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Marks a test that runs a simulation of hosts: `#[corsair_host::test]`. The test's function takes `sim: &mut Sim`.
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `seeds = N` | the number of seeds to run | 1 |
/// | `first_seed = N` | the first seed | 1 |
/// | `deterministic = true` | each seed also runs on 2 and 4 workers; a digest that differs fails the test | false |
///
/// The environment variable `SEED` selects a single seed.
#[proc_macro_attribute]
pub fn host_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    host_test::expand(attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
