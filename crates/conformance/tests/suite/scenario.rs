//! A macro that declares a scenario in one line.

/// Declares a scenario of the module's messages, `Body`: `scenario!(Name { field: Type }, cx, { body })`.
macro_rules! scenario {
    ($(#[$derive:meta])* $name:ident { $($field:ident: $type:ty),* }, $cx:ident, $body:block) => {
        $(#[$derive])*
        struct $name { $($field: $type),* }
        impl corsair::Scenario<Body> for $name {
            #[allow(unused_mut, reason = "not every scenario uses its context")]
            async fn root<C: corsair::AsyncContext<Body>>(self, mut $cx: C) {
                let $name { $($field),* } = self;
                $body
            }
        }
    };
}
