//! The published manifests of well-known systems.

use super::*;

/// Imports public systems without edits, if `CORSAIR_IMPORT_CHECKOUTS` names the folder of their repositories: see
/// `ci/import.sh`.
#[test]
fn public_manifests_are_imported_without_an_edit() {
    let Some(checkouts) = std::env::var_os("CORSAIR_IMPORT_CHECKOUTS") else {
        return;
    };
    let checkouts = PathBuf::from(checkouts);
    let systems: &[(&[&str], usize, &[&str])] = &[
        (
            &[
                "microservices-demo/release/kubernetes-manifests.yaml",
                "microservices-demo/release/istio-manifests.yaml",
            ],
            11,
            &[
                "outside>frontend",
                "frontend>cartservice",
                "cartservice>redis-cart",
                "checkoutservice>paymentservice",
            ],
        ),
        (
            &["DeathStarBench/socialNetwork/docker-compose.yml"],
            25,
            &[
                "nginx-thrift>user-timeline-service?",
                "post-storage-service>post-storage-mongodb",
                "home-timeline-service>home-timeline-redis?",
            ],
        ),
        (
            &["DeathStarBench/mediaMicroservices/docker-compose.yml"],
            30,
            &[
                "movie-id-service>movie-id-mongodb?",
                "rating-service>rating-redis?",
            ],
        ),
        (
            &["DeathStarBench/hotelReservation/docker-compose.yml"],
            15,
            &[
                "frontend>search?",
                "profile>mongodb-profile",
                "profile>memcached-profile",
            ],
        ),
        (
            &["DeathStarBench/hotelReservation/kubernetes"],
            15,
            &["outside>frontend?", "frontend>search?"],
        ),
        (
            &["TeaStore/examples/kubernetes/teastore-clusterip.yaml"],
            7,
            &[
                "outside>teastore-webui",
                "teastore-persistence>teastore-db",
                "teastore-webui>teastore-auth?",
            ],
        ),
        (
            &["TeaStore/examples/docker/docker-compose_default.yaml"],
            7,
            &["outside>webui", "persistence>db", "webui>auth?"],
        ),
        (
            &[
                "istio/samples/bookinfo/platform/kube/bookinfo.yaml",
                "istio/samples/bookinfo/networking/bookinfo-gateway.yaml",
                "istio/samples/bookinfo/networking/destination-rule-reviews.yaml",
                "istio/samples/bookinfo/networking/virtual-service-reviews-90-10.yaml",
            ],
            6,
            &[
                "outside>productpage-v1",
                "productpage-v1>details-v1?",
                "productpage-v1>reviews-v1?",
                "productpage-v1>reviews-v2?",
            ],
        ),
        (
            &[
                "opentelemetry-demo/compose.yaml",
                "opentelemetry-demo/compose.full.yaml",
                "opentelemetry-demo/src/load-generator/script.js",
            ],
            20,
            &[
                "outside>frontend-proxy",
                "frontend-proxy>frontend",
                "frontend>cart",
                "cart>valkey-cart",
                "checkout>payment",
                "kafka~accounting?",
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (files, least, expected) in systems {
        let paths: Vec<PathBuf> = files.iter().map(|file| checkouts.join(file)).collect();
        match import(&paths, &ImportOptions::default()) {
            Err(error) => wrong.push(error.to_string()),
            Ok(imported) => {
                let found = calls(&imported);
                let services = imported.definition.services.len() - imported.definition.load.len();
                if services < *least {
                    wrong.push(format!("{}: {services} services", files[0]));
                }
                let missing = expected
                    .iter()
                    .filter(|call| found.iter().all(|known| known != *call));
                wrong.extend(missing.map(|call| format!("{}: no {call}", files[0])));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
