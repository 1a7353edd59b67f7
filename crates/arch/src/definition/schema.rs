//! Compares `schema.json` with the types of definitions.

use super::{Definition, schema};

#[test]
fn the_schema_is_that_of_the_types() {
    let made = serde_json::to_string_pretty(&schemars::schema_for!(Definition)).unwrap();
    if std::env::var_os("CORSAIR_WRITE_SCHEMA").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/definition/schema.json");
        std::fs::write(file, format!("{made}\n")).unwrap();
        return;
    }
    assert_eq!(
        schema(),
        made,
        "write it again: CORSAIR_WRITE_SCHEMA=1 cargo test -p corsair-arch --features schema schema"
    );
}
