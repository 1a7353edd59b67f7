//! Broken, changed and very large manifests.

use super::*;

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let refused = |name: &str, text: &str| import_texts(&[(name, text)]).unwrap_err().to_string();
    let said = refused(
        "a.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, template: {spec: {}}}",
    );
    assert!(said.ends_with("a.yaml: Deployment 'web': spec.replicas is 'many'; expected a whole number from 0 to 1000000"), "{said}");
    assert!(refused("a.yaml", "a: [b\n").contains("is not valid YAML"));
    assert!(refused("a.yaml", "x: {{ .Values.name }}").contains("helm template"));
    assert!(refused("a.yaml", "hello: world").contains("no document of a known format"));
    assert!(refused("a.yaml", "services: {}").contains("no service"));
    assert!(refused("a.js", "let x = 1").contains("no document"));
    let missing = import(&["nowhere.yaml".into()], &ImportOptions::default()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read nowhere.yaml"));
}

#[test]
fn documents_that_would_grow_without_bound_are_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        let _ = writeln!(
            laughs,
            "a{level}: &a{level} [{}]",
            before.trim_end_matches(", ")
        );
    }
    let deep = "{a: ".repeat(100_000);
    let lists = "[".repeat(100_000);
    let documents = "---\na: 1\n".repeat(30_000);
    let merged = format!("x: &x {{{}}}\ny: {{<<: *x}}", "k: v, ".repeat(10));
    for text in [laughs, deep, lists, documents, merged] {
        assert!(import_texts(&[("a.yaml", &text)]).is_err());
    }
    // A chain of calls may be long, but not of the program's own stack.
    let mut chain =
        "services:\n  s0: {image: x, ports: ['1:1'], environment: {A_ADDR: 's1:1'}}\n".to_owned();
    for place in 1..3000 {
        let _ = writeln!(
            chain,
            "  s{place}: {{image: x, environment: {{A_ADDR: 's{}:1'}}}}",
            place + 1
        );
    }
    assert_eq!(shop(&[("compose.yml", &chain)]).calls.len(), 3000);
}
