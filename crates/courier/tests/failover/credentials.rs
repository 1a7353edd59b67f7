//! A NATS server with accounts that have keys. Nodes authenticate with a `.creds` file, as `nsc` writes it.

use crate::process::{Nats, NodeProcess, free_port};
use crate::stream::ping;
use corsair_courier_load::client::Http;
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Returns a token with these claims about `subject`, signed by `issuer`.
fn token(issuer: &KeyPair, subject: &KeyPair, name: &str, nats: &Value) -> String {
    let head = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({
        "jti": name,
        "iat": 1_700_000_000,
        "iss": issuer.public_key(),
        "sub": subject.public_key(),
        "name": name,
        "nats": nats,
    });
    let encode = |part: &Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
    let signed = format!("{}.{}", encode(&head), encode(&claims));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// Returns the contents of a `.creds` file for a user of this account.
fn credentials(account: &KeyPair, user: &KeyPair) -> String {
    let nats = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    let token = token(account, user, "node", &nats);
    let seed = user.seed().unwrap();
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

/// Returns the permissions of an account.
fn account(storage: i64) -> Value {
    json!({
        "limits": {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": storage, "disk_storage": storage,
            "streams": storage, "consumer": storage,
        },
        "default_permissions": {"pub": {}, "sub": {}},
        "type": "account",
        "version": 2,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_node_comes_in_with_a_creds_file_and_not_with_that_of_another_account() {
    let dir = tempfile::tempdir().unwrap();
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let (courier, user) = (KeyPair::new_account(), KeyPair::new_user());
    let says = json!({"type": "operator", "version": 2, "system_account": system.public_key()});
    let configuration = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload {{\n  {}: {}\n  {}: {}\n}}\n",
        token(&operator, &operator, "operator", &says),
        system.public_key(),
        system.public_key(),
        token(&operator, &system, "SYS", &account(0)),
        courier.public_key(),
        token(&operator, &courier, "courier", &account(-1)),
    );
    let file = dir.path().join("nats.conf");
    std::fs::write(&file, configuration).unwrap();
    let nats = Nats::start_with(free_port(), &dir.path().join("nats"), Some(&file)).await;
    let creds = dir.path().join("node.creds");
    std::fs::write(&creds, credentials(&courier, &user)).unwrap();
    let flags = ["--nats-credentials", creds.to_str().unwrap()];
    let data = dir.path().join("node");
    let node = NodeProcess::start_with(free_port(), &data, Some(&nats.url()), &flags).await;
    ping(&node.host(), 200).await;
    let mut http = Http::connect(&node.host()).await.unwrap();
    http.create_user("anne", "correct horse").await.unwrap();
    drop(node);
    // A user of an account that the operator has not signed.
    let stranger = credentials(&KeyPair::new_account(), &KeyPair::new_user());
    std::fs::write(&creds, stranger).unwrap();
    let said = NodeProcess::refused_with(free_port(), &data, &nats.url(), &flags);
    assert!(said.contains("the credentials are correct"), "{said}");
    std::fs::write(&creds, "-----BEGIN NATS USER JWT-----\ncut off").unwrap();
    let said = NodeProcess::refused_with(free_port(), &data, &nats.url(), &flags);
    assert!(
        said.contains("node.creds") && said.contains(".creds file"),
        "{said}"
    );
}
