//! A server with a certificate.

use crate::program::terminal;

#[test]
fn files_that_are_not_a_certificate_and_its_key_are_refused() {
    let terminal = terminal();
    terminal.write("empty.pem", "");
    terminal.write(
        "key.pem",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    for (flags, part) in [
        ("--tls-cert none.pem --tls-key key.pem", "none.pem"),
        (
            "--tls-cert empty.pem --tls-key key.pem",
            "has no certificate",
        ),
        ("--tls-cert empty.pem", "--tls-key"),
    ] {
        let said = terminal.refuse(&format!("serve --addr 127.0.0.1:0 {flags}"));
        assert!(said.contains(part), "{flags}: {said}");
    }
}
