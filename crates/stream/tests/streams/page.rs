//! Tests of the pictures of tasks, and of the page with all tasks.

use crate::http::Service;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use corsair_stream::http::{HttpOptions, router, router_with};
use tower::ServiceExt;

async fn ask(service: &Service, path: &str) -> Response<Body> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    router(service.engine.clone())
        .oneshot(request)
        .await
        .unwrap()
}

async fn text(answer: Response<Body>) -> String {
    assert_eq!(answer.status(), StatusCode::OK);
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

/// True if every tag is closed in the right order; texts are not checked.
fn is_well_formed(xml: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = xml;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((tag, after)) = after.split_once('>') else {
            return false;
        };
        rest = after;
        let name = |tag: &str| tag.split([' ', '/']).next().unwrap_or_default().to_owned();
        if let Some(end) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(end) {
                return false;
            }
        } else if !tag.ends_with('/') && !tag.starts_with('!') {
            open.push(name(tag));
        }
    }
    open.is_empty()
}

const JOIN: &str = "var a = stream | from('a') | where(v > 1 AND h != '<b>')
    var b = stream | from('b')
    a | join(b) | alert().crit(a.v > 9) | http_out('x')";

#[tokio::test]
async fn a_task_is_drawn_with_its_nodes_and_what_has_gone_over_its_edges() {
    let service = Service::new();
    service.task("t", JOIN).await;
    service
        .write("a,h=x v=2 1\na,h=x v=2 2\na,h=x v=0 3\nb v=2 1\n")
        .await;
    service.engine.settle().await;
    let answer = ask(&service, "/tasks/t?format=svg").await;
    assert_eq!(answer.headers()["content-type"], "image/svg+xml");
    let svg = text(answer).await;
    assert!(is_well_formed(&svg), "{svg}");
    for shown in [
        ">stream<",
        ">from0<",
        ">where1<",
        ">from2<",
        ">join3<",
        ">alert4<",
        ">http_out5<",
        // From the writes to `from`, from there to `where`, and what it let through.
        ">3 of 3<",
        ">2 of 2<",
        ">1 of 1<",
    ] {
        assert!(svg.contains(shown), "{shown} in {svg}");
    }
    // The text of a node appears as in the task, with special characters escaped.
    assert!(
        svg.contains("where(v &gt; 1 AND h != '&lt;b&gt;')"),
        "{svg}"
    );
    assert_eq!(svg.matches("<path d=\"M").count(), 7 + 1, "{svg}");
    assert!(!svg.contains("style="), "a policy may forbid it");
}

#[tokio::test]
async fn nodes_of_a_picture_do_not_lie_on_each_other() {
    let service = Service::new();
    let mut task = String::from("var a = stream | from('a')\n");
    for at in 0..9 {
        task += &format!("a | where(v > {at}) | http_out('x{at}')\n");
    }
    service.task("t", &task).await;
    let svg = text(ask(&service, "/tasks/t?format=svg").await).await;
    let number = |part: &str, name: &str| -> usize {
        let (_, rest) = part.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let boxes = svg.split("<rect ").skip(2).map(|part| {
        let part = format!(" {}", part.split_once('>').unwrap().0);
        ["x", "y", "width", "height"].map(|name| number(&part, name))
    });
    let boxes: Vec<[usize; 4]> = boxes.collect();
    assert_eq!(boxes.len(), 1 + 1 + 18);
    for (at, [x, y, width, height]) in boxes.iter().enumerate() {
        for [left, top, wide, high] in &boxes[..at] {
            let apart =
                x + width <= *left || left + wide <= *x || y + height <= *top || top + high <= *y;
            assert!(apart, "{boxes:?}");
        }
    }
}

#[tokio::test]
async fn the_page_shows_all_tasks_and_allows_no_script() {
    let service = Service::new();
    service.task("first", "stream | from('m') | log()").await;
    service.task("second", JOIN).await;
    let answer = ask(&service, "/").await;
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(!policy.contains("script-src"), "{policy}");
    let page = text(answer).await;
    assert!(
        !page.contains("<script") && !page.contains("style="),
        "{page}"
    );
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(page.find(">first<").unwrap() < page.find(">second<").unwrap());
    let style = ask(&service, "/style.css").await;
    assert_eq!(style.headers()["content-type"], "text/css");
    assert!(text(style).await.contains(".corsair [fill="));
}

#[tokio::test]
async fn many_tasks_are_shown_page_by_page() {
    let service = Service::new();
    assert!(
        text(ask(&service, "/").await)
            .await
            .contains("There are none")
    );
    for at in 0..51 {
        service
            .task(&format!("t{at:02}"), "stream | from('m')")
            .await;
    }
    let first = text(ask(&service, "/").await).await;
    assert_eq!(first.matches("<svg ").count(), 50);
    assert!(first.contains("href=\"/?from=t50\""), "{first}");
    let second = text(ask(&service, "/?from=t50").await).await;
    assert_eq!(second.matches("<svg ").count(), 1);
    assert!(second.contains("href=\"/\""), "{second}");
}

#[tokio::test]
async fn the_page_asks_a_browser_for_the_token() {
    let service = Service::new();
    let options = HttpOptions {
        token: Some("sesame".into()),
        ..HttpOptions::default()
    };
    let router = router_with(service.engine.clone(), options);
    let request = |login: Option<&str>| {
        let request = Request::get("/");
        let request = match login {
            Some(login) => request.header("authorization", format!("Basic {login}")),
            None => request,
        };
        request.body(Body::empty()).unwrap()
    };
    let refused = router.clone().oneshot(request(None)).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let asked = refused.headers().get_all("www-authenticate");
    assert!(
        asked
            .iter()
            .any(|how| how.to_str().unwrap().starts_with("Basic "))
    );
    // `:sesame`
    let shown = router.oneshot(request(Some("OnNlc2FtZQ=="))).await.unwrap();
    assert_eq!(shown.status(), StatusCode::OK);
}
