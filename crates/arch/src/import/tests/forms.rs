//! The forms in which documents come: namespaces, lists, output of Helm, marks of editors.

use super::*;

/// Returns a Deployment and its Service in a namespace.
fn spaced(namespace: &str, name: &str, env: &[(&str, &str)]) -> String {
    let text = deployment(name, name, "v1", ("100m", "200m"), env) + &host(name, name, "ClusterIP");
    text.replace(
        &format!("metadata: {{name: {name}}}"),
        &format!("metadata: {{name: {name}, namespace: {namespace}}}"),
    )
}

fn names(imported: &Imported) -> Vec<&str> {
    let services = imported.definition.services.iter();
    services.map(|service| service.name.as_str()).collect()
}

#[test]
fn one_name_in_two_namespaces_is_two_services() {
    let text = spaced(
        "shop",
        "web",
        &[
            ("DB_ADDR", "db:5432"),
            ("AUTH_URL", "http://web.admin.svc.cluster.local/x"),
        ],
    ) + &spaced("shop", "db", &[])
        + &spaced(
            "admin",
            "web",
            &[("DB_ADDR", "db:5432"), ("LOG_ADDR", "audit.admin:1")],
        )
        + &spaced("admin", "db", &[])
        + &spaced("admin", "audit", &[])
        + "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: db, namespace: admin}\nspec: {hosts: [db], http: [{route: [{destination: {host: db}}], timeout: 3s}]}\n"
        + "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: admin}\nspec: {scaleTargetRef: {name: web}, maxReplicas: 7, metrics: [{resource: {name: cpu, target: {averageUtilization: 50}}}]}\n";
    let imported = shop(&[("all.yaml", &text)]);
    assert_eq!(
        calls(&imported),
        [
            "outside>web_shop?",
            "web_shop>db_shop",
            "web_shop>web_admin",
            "web_admin>db_admin",
            "web_admin>audit",
        ]
    );
    assert_eq!(
        service(&imported, "web_admin").calls["db_admin"].timeout,
        Some("3s".parse().unwrap())
    );
    assert!(service(&imported, "web_shop").calls.is_empty());
    let scaled = |name| service(&imported, name).autoscaler.is_some();
    assert_eq!((scaled("web_admin"), scaled("web_shop")), (true, false));
}

#[test]
fn namespaces_with_different_names_leave_the_names_alone() {
    let text = spaced("shop", "web", &[("DB_ADDR", "db.data:5432")]) + &spaced("data", "db", &[]);
    let imported = shop(&[("all.yaml", &text)]);
    assert_eq!(calls(&imported), ["outside>web?", "web>db"]);
    // A patch without a namespace changes the workload of the name.
    let patch =
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {replicas: 4}}";
    let imported = shop(&[("all.yaml", &text), ("patch.yaml", patch)]);
    assert_eq!(names(&imported), ["web", "db", "www"]);
    assert_eq!(service(&imported, "db").count, 4);
}

#[test]
fn a_service_without_a_selector_and_hosts_outside_are_named() {
    let text = deployment(
        "web",
        "web",
        "v1",
        ("", ""),
        &[
            ("DB_ADDR", "legacy:5432"),
            ("PAY_ADDR", "pay:443"),
            ("MAIL_ADDR", "mail:25"),
        ],
    ) + &deployment("post", "post", "v1", ("", ""), &[])
        + "---\n{apiVersion: v1, kind: Service, metadata: {name: legacy}, spec: {ports: [{port: 5432}]}}\n"
        + "---\n{apiVersion: v1, kind: Service, metadata: {name: pay}, spec: {type: ExternalName, externalName: pay.example.com}}\n"
        + "---\n{apiVersion: v1, kind: Service, metadata: {name: mail}, spec: {type: ExternalName, externalName: post.default.svc.cluster.local}}\n"
        + "---\n{apiVersion: v1, kind: Service, metadata: {name: typo}, spec: {selector: {app: wbe}}}\n";
    let imported = shop(&[("all.yaml", &text)]);
    assert_eq!(calls(&imported), ["outside>web?", "web>post"]);
    let left_out = imported.left_out.join("\n");
    for part in [
        "Service 'legacy' has no selector",
        "'pay' is the host 'pay.example.com' outside",
        "no workload has the labels that Service 'typo' selects",
    ] {
        assert!(left_out.contains(part), "{part} is missing:\n{left_out}");
    }
    assert!(
        !left_out.contains("which no document describes"),
        "{left_out}"
    );
}

#[test]
fn output_of_helm_template_has_comments_empty_documents_and_hooks() {
    let text = format!(
        "---\n# Source: shop/templates/empty.yaml\n---\n# Source: shop/templates/web.yaml\n{}---\n\n---\n# Source: shop/templates/tests/test.yaml\n\
         apiVersion: v1\nkind: Pod\nmetadata:\n  name: shop-test-connection\n  annotations:\n    \"helm.sh/hook\": test\nspec:\n  containers:\n  - {{name: wget, image: busybox, args: ['web:80']}}\n",
        deployment("web", "web", "v1", ("", ""), &[])
    );
    let imported = shop(&[("all.yaml", &text)]);
    assert_eq!(names(&imported), ["web", "www"]);
    let left_out = imported.left_out.join("\n");
    assert!(
        left_out.contains("Pod 'shop-test-connection' is a hook of Helm"),
        "{left_out}"
    );
}

#[test]
fn lists_of_any_kind_json_crlf_and_byte_order_marks_are_read() {
    let json = r#"{"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {"resourceVersion": "7"}, "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
         "spec": {"template": {"spec": {"containers": [{"name": "w", "image": "x"}]}}}}, null]}"#;
    let plain = deployment("web", "web", "v1", ("1", "2"), &[("A_ADDR", "a:1")]);
    for text in [
        json.to_owned(),
        format!("\u{feff}{json}"),
        format!("{json}\n{{\"apiVersion\": \"v1\", \"kind\": \"Namespace\"}}"),
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        format!("{plain}...\n---\n---\n"),
    ] {
        let imported = shop(&[("all.yaml", &text)]);
        assert_eq!(names(&imported), ["web", "www"], "{text}");
    }
    let imported = shop(&[("list.json", json)]);
    let unused: Vec<&str> = imported
        .unused
        .iter()
        .map(|one| one.kind.as_str())
        .collect();
    assert!(unused.contains(&"List"), "{unused:?}");
    let documents = format!("{json} {}", json.replace("web", "second"));
    assert_eq!(
        names(&shop(&[("two.json", &documents)])),
        ["web", "second", "www"]
    );
}
