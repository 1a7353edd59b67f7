//! Tests with valid and invalid compose files of all versions.

use super::*;
use crate::{Scale, Topology};

fn convert_text(text: &str) -> Result<Definition, ImportError> {
    compose_text(text, Path::new("shop.yml"), "shop")
}

/// Returns name, package, count and dependencies of each service.
fn shape(text: &str) -> Vec<String> {
    let definition = convert_text(text).unwrap();
    let line = |service: &ServiceDefinition| {
        let dependencies = service.dependencies().join(" ");
        let (name, package, count) = (&service.name, &service.package, service.count);
        format!("{name} {package} {count}: {dependencies}")
    };
    definition.services.iter().map(line).collect()
}

fn refusal(text: &str) -> String {
    convert_text(text).unwrap_err().to_string()
}

#[test]
fn version_1_is_services_with_links() {
    let text = "
web:
  build: ./app
  links:
    - 'db:redis'
front:
  image: nginx
  ports: ['80:80']
  volumes_from: [web]
  links: ['web:web']
db:
  image: redis
";
    assert_eq!(
        shape(text),
        [
            "db cache 1: ",
            "front zuul 3: web",
            "web monolith 3: db",
            "www-front denominator 0: front",
        ]
    );
}

#[test]
fn version_2_has_networks_that_are_load_balancers() {
    let text = "
version: '2'
services:
  proxy:
    build: ./proxy
    ports: ['8080:8080']
    links: [app]
    networks: [front]
  app:
    build: ./app
    links: [db]
    networks: [front, back]
  db:
    image: postgres
    networks: [back]
networks:
  front:
  back:
";
    assert_eq!(
        shape(text),
        [
            "app monolith 3: db",
            "db store 1: ",
            "proxy monolith 3: app",
            "back elb 0: app db",
            "front elb 0: proxy",
            "www-proxy denominator 0: front",
        ]
    );
    let definition = convert_text(text).unwrap();
    assert_eq!(definition.services[2].container, "./proxy");
    assert_eq!(definition.services[5].regions, 0);
}

#[test]
fn a_network_leads_to_all_its_services_where_nothing_says_who_calls_whom() {
    let text = "
version: '2'
services:
  proxy: {build: ./proxy, ports: ['8080:8080'], networks: [front]}
  app: {build: ./app, networks: [front, back]}
  db: {image: postgres, networks: [back]}
networks: {front: , back: }
";
    assert_eq!(
        shape(text),
        [
            "app monolith 3: ",
            "db store 1: ",
            "proxy monolith 3: ",
            "back elb 0: app db",
            "front elb 0: app proxy",
            "www-proxy denominator 0: front",
        ]
    );
}

#[test]
fn version_3_has_replicas_and_maps_where_lists_were() {
    let text = "
version: '3.8'
services:
  api:
    build: {context: ./api}
    deploy: {replicas: 5}
    depends_on:
      ring: {condition: service_healthy}
  ring:
    image: cassandra:4
    networks:
      data: {aliases: [c]}
";
    assert_eq!(
        shape(text),
        [
            "api monolith 5: ring",
            "ring priamCassandra 3: ring",
            "data elb 0: ring",
            "www-api denominator 0: api",
        ]
    );
}

#[test]
fn only_a_port_of_the_host_lets_load_in() {
    let text = "
web: {build: ./web, ports: ['8080:80'], links: [redis]}
redis: {image: redis, ports: ['6379']}
admin: {build: ./admin, ports: ['127.0.0.1::81'], links: [redis]}
";
    let made = shape(text);
    let entries: Vec<&String> = made.iter().filter(|s| s.contains("denominator")).collect();
    assert_eq!(entries, ["www-web denominator 0: web"]);
    let long = "a: {image: x, ports: [{target: 80, published: 8080}]}\nb: {image: y, ports: [{target: 80}]}";
    assert!(shape(long).contains(&"www-a denominator 0: a".to_owned()));
    assert!(!shape(long).iter().any(|s| s.starts_with("www-b")));
}

#[test]
fn the_load_of_one_port_reaches_only_its_service() {
    let text = "
version: '2'
services:
  vote: {build: ./vote, ports: ['5000:80'], links: [redis], networks: [front, back]}
  result: {build: ./result, ports: ['5001:80'], links: [db], networks: [front, back]}
  redis: {image: redis, ports: ['6379'], networks: [back]}
  db: {image: 'postgres:9.4', volumes: ['db-data:/var/lib/postgresql/data'], networks: [back]}
volumes: {db-data: }
networks: {front: , back: }
";
    assert_eq!(
        shape(text),
        [
            "db-data volume 1: ",
            "db staash 1: db-data",
            "redis cache 1: ",
            "result monolith 3: db",
            "vote monolith 3: redis",
            "back-result elb 0: result",
            "back-vote elb 0: vote",
            "front-result elb 0: result",
            "front-vote elb 0: vote",
            "www-result denominator 0: front-result",
            "www-vote denominator 0: front-vote",
        ]
    );
}

#[test]
fn named_volumes_are_kept_and_directories_of_the_host_are_not() {
    let text = "
web: {build: ., volumes: ['./src:/src', 'files:/files:ro', '/tmp']}
db: {image: mysql, volumes: [{type: volume, source: web, target: /data}]}
";
    assert_eq!(
        shape(text),
        [
            "web-vol volume 1: ",
            "files volume 1: ",
            "db staash 1: web-vol",
            "web monolith 3: files",
            "www-db denominator 0: db",
            "www-web denominator 0: web",
        ]
    );
}

#[test]
fn what_is_made_is_written_a_service_a_line_and_can_be_run() {
    let definition = convert_text("web: {image: my/app.v2}\n").unwrap();
    let text = definition.to_text();
    assert!(
        text.contains("\n    {\"name\":\"web\",\"machine\":\"machine\","),
        "{text}"
    );
    let checked = crate::read_text(&text, "shop.json").unwrap();
    let topology = Topology::new(&checked, Scale::default()).unwrap();
    assert_eq!(topology.len(), 4);
}

#[test]
fn names_that_definitions_do_not_allow_are_changed_and_taken_ones_end_in_net() {
    let text = "
services:
  my.app: {image: a, networks: [db], ports: ['80:80']}
  db: {image: mysql}
";
    assert_eq!(
        shape(text),
        [
            "db store 1: ",
            "my_app monolith 3: ",
            "db-net elb 0: my_app",
            "www-my_app denominator 0: db-net",
        ]
    );
}

#[test]
fn files_that_are_none_are_refused_in_a_sentence() {
    assert_eq!(
        refusal("[1, 2]"),
        "shop.yml is not usable: expected an object with services by name"
    );
    assert_eq!(
        refusal("version: '7'\nservices: {a: {image: b}}"),
        "shop.yml is not usable: compose version '7' is unknown; there are 1, 2 and 3"
    );
    assert_eq!(
        refusal("version: '3'"),
        "shop.yml is not usable: there are no services"
    );
    assert_eq!(
        refusal("web: 5"),
        "shop.yml is not usable: service 'web' has no fields; give it an image or a build"
    );
    assert_eq!(
        refusal("web: {links: [dbb]}\ndb: {image: mysql}"),
        "shop.yml is not usable: service 'web' depends on 'dbb', which is not a service; did you mean db?"
    );
    assert_eq!(
        refusal("services: {a: {image: b, deploy: {replicas: 0}}}"),
        "shop.yml is not usable: service 'a': it has 0 replicas; give 1 or more"
    );
    let broken = refusal("web:\n  image: [a\n");
    assert!(
        broken.starts_with("shop.yml is not valid YAML: "),
        "{broken}"
    );
    assert_eq!(broken.lines().count(), 1);
    let missing = compose(Path::new("nowhere.yml"), "", "")
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("cannot read nowhere.yml: "),
        "{missing}"
    );
}
