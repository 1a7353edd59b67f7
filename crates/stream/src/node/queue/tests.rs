use super::*;
use std::sync::mpsc;
use std::time::Duration;

fn body(text: &str, counts: &Counts) -> Body {
    Body {
        number: 0,
        text: text.into(),
        count: 1,
        counts: counts.clone(),
        pending: None,
    }
}

/// Creates a queue of ten bytes whose deliveries each wait for a permission.
fn queue() -> (Queue, mpsc::Receiver<String>, mpsc::Sender<bool>) {
    let (delivered, read) = mpsc::channel();
    let (permit, permitted) = mpsc::channel();
    let deliver = move |bodies: &[Undelivered], over: &dyn Fn() -> bool| {
        let _ = delivered.send(bodies[0].text.clone());
        loop {
            match permitted.recv_timeout(Duration::from_millis(1)) {
                Ok(true) => return Delivery::Delivered,
                Ok(false) => return Delivery::Refused,
                Err(_) if over() => return Delivery::Unavailable,
                Err(_) => {}
            }
        }
    };
    (
        Queue::new("test".into(), 10, Box::new(deliver)),
        read,
        permit,
    )
}

#[tokio::test]
async fn bodies_are_delivered_in_order_and_counted() {
    let (queue, read, permit) = queue();
    let counts = Counts::default();
    for (text, succeeds) in [("a", true), ("b", false), ("c", true)] {
        queue
            .push(body(text, &counts), Overflow::Block, || false)
            .await;
        permit.send(succeeds).unwrap();
    }
    queue.drained().await;
    assert_eq!(read.try_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((counts.delivered.get(), counts.failed.get()), (2, 1));
}

#[tokio::test]
async fn a_full_queue_drops_what_its_policy_says() {
    for (overflow, kept) in [
        (Overflow::DropNewest, "2nd"),
        (Overflow::DropOldest, "third"),
    ] {
        let (queue, read, permit) = queue();
        let counts = Counts::default();
        queue.push(body("first", &counts), overflow, || false).await;
        // It is being delivered, so that it cannot be dropped.
        assert_eq!(read.recv().unwrap(), "first");
        queue.push(body("2nd", &counts), overflow, || false).await;
        queue.push(body("third", &counts), overflow, || false).await;
        assert_eq!(counts.dropped.get(), 1, "{overflow}");
        permit.send(true).unwrap();
        permit.send(true).unwrap();
        queue.drained().await;
        assert_eq!(read.recv().unwrap(), kept, "{overflow}");
    }
}

#[tokio::test]
async fn what_is_kept_comes_back_with_what_was_being_delivered() {
    let (queue, read, _permit) = queue();
    let counts = Counts::default();
    queue
        .push(body("one", &counts), Overflow::Block, || false)
        .await;
    assert_eq!(read.recv().unwrap(), "one");
    queue
        .push(body("two", &counts), Overflow::Block, || false)
        .await;
    queue.keep();
    // More than the queue may hold: it is kept nevertheless.
    queue
        .push(body("three hundred", &counts), Overflow::Block, || false)
        .await;
    queue.drained().await;
    let rest = loop {
        // The thread gives up soon.
        if !queue.0.state.lock().running {
            break queue.rest();
        }
        tokio::task::yield_now().await;
    };
    let rest: Vec<&str> = rest.iter().map(|body| &*body.text).collect();
    assert_eq!(rest, ["one", "two", "three hundred"]);
}

#[tokio::test]
async fn a_sender_that_waits_for_room_goes_on_when_its_task_is_aborted() {
    let (queue, _read, _permit) = queue();
    let counts = Counts::default();
    let aborted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    queue
        .push(body("123456789", &counts), Overflow::Block, || false)
        .await;
    let pushing = {
        let (queue, aborted, counts) = (queue.clone(), aborted.clone(), counts.clone());
        tokio::spawn(async move {
            let aborted = || aborted.load(std::sync::atomic::Ordering::SeqCst);
            queue
                .push(body("0123456789", &counts), Overflow::Block, aborted)
                .await;
        })
    };
    tokio::task::yield_now().await;
    assert!(!pushing.is_finished());
    aborted.store(true, std::sync::atomic::Ordering::SeqCst);
    queue.wake_senders();
    pushing.await.unwrap();
    queue.discard();
}
