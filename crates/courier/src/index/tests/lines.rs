//! Tests of lines: an index is rebuilt from them, and what is not an index is refused.

use super::*;
use crate::model::SessionId;

fn lines(dir: &Path) -> Vec<Line> {
    let mut all = Vec::new();
    let opened = OpenedIndex::open(Some(dir)).unwrap();
    let take = |line| {
        all.push(line);
        Ok(())
    };
    opened.lines(take).unwrap();
    all
}

fn build(dir: &Path, lines: &[Line]) -> Result<u64, String> {
    let mut builder = IndexBuilder::create(&dir.join(FILE), 7).unwrap();
    for line in lines {
        builder.push(line.clone())?;
    }
    builder.finish()
}

/// An index with rows in every table.
async fn fill(dir: &Path) -> (UserId, ConversationId) {
    let mut fed = TestIndex::open(Some(dir));
    let ([a, b, c], both, only) = fed.rooms().await;
    for at in 0..3000 {
        let room = if at % 3 == 0 { only } else { both };
        fed.post(a, room, None, at * 40).await.unwrap();
    }
    for (day, key) in [(2, 1), (1, 2), (3, 3)] {
        fed.post(a, both, Some(key), day * DAY).await.unwrap();
    }
    let session = SessionId([9; 16]);
    let command = Command::LogIn {
        user: b,
        session,
        proof: [3; 32],
        expires: Millis(9 * DAY),
        at: Millis(5),
    };
    fed.apply(command).await.unwrap();
    let acknowledged = Acknowledgement {
        user: b,
        session,
        sequence: 1500,
    };
    for command in [
        Command::Acknowledge(vec![acknowledged]),
        Command::BeginConversation {
            creator: a,
            recipients: vec![b],
            title: "ahoy".to_owned(),
            key: Some([4; 16]),
            pair: true,
            at: Millis(3 * DAY),
        },
        Command::DeleteUser {
            user: c,
            before: "hash".to_owned(),
        },
        Command::Expire {
            through: 2,
            most: 100,
        },
    ] {
        fed.apply(command).await.unwrap();
    }
    fed.close();
    (a, both)
}

#[tokio::test]
async fn an_index_that_is_built_from_the_lines_of_another_has_the_same_lines_and_goes_on() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, both) = fill(dir.path()).await;
    let all = lines(dir.path());
    build(copy.path(), &all).unwrap();
    assert_eq!(lines(copy.path()), all);
    let mut pairs = Vec::new();
    for dir in [&dir, &copy] {
        let opened = OpenedIndex::open(Some(dir.path())).unwrap();
        opened.verify().unwrap();
        let bytes = opened.state.bytes;
        let mut fed = TestIndex::start(opened);
        let again = fed.post(a, both, Some(3), 4 * DAY).await;
        let next = fed.post(a, both, Some(5), 4 * DAY).await;
        pairs.push((bytes, again, next, fed.user("c").await));
        fed.close();
    }
    assert_eq!(pairs[0], pairs[1]);
    assert_eq!(number(&pairs[0].1), (2003, true));
}

#[tokio::test]
async fn what_is_left_out_doubled_or_out_of_order_is_refused_with_the_number_of_the_line() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path()).await;
    let all = lines(dir.path());
    let copy = tempfile::tempdir().unwrap();
    let refuse = |lines: &[Line], place: usize| {
        let said = build(copy.path(), lines).unwrap_err();
        assert!(said.starts_with(&format!("line {}: ", place + 1)), "{said}");
    };
    let kind = |line: &Line| std::mem::discriminant(line);
    let begins = |place: &usize| *place == 0 || kind(&all[place - 1]) != kind(&all[*place]);
    for place in (0..all.len()).filter(begins) {
        let mut twice = all.clone();
        twice.insert(place, all[place].clone());
        refuse(&twice, place + 1);
        // Users, conversations and messages are numbered, and all lines need the first one.
        if let Line::Begin { .. } | Line::User { .. } | Line::Message { .. } = all[place] {
            let mut less = all.clone();
            less.remove(place);
            refuse(&less, place);
        }
    }
    let changed = |change: &dyn Fn(&mut Line) -> bool| {
        let mut lines = all.clone();
        let place = lines.iter_mut().position(change).unwrap();
        (lines, place)
    };
    for change in [
        &(|line: &mut Line| match line {
            Line::Begin { courier, .. } => {
                *courier = 99;
                true
            }
            _ => false,
        }) as &dyn Fn(&mut Line) -> bool,
        &|line| match line {
            Line::Conversation { members, .. } => {
                members.push(99);
                true
            }
            _ => false,
        },
        &|line| match line {
            Line::Conversation { creator, .. } => {
                *creator = 0;
                true
            }
            _ => false,
        },
        &|line| match line {
            Line::Session { proof, .. } => {
                proof.pop();
                true
            }
            _ => false,
        },
        &|line| match line {
            Line::Queue { count, .. } => {
                *count = u64::MAX;
                true
            }
            _ => false,
        },
        &|line| match line {
            Line::Key { day, .. } => {
                *day = 77;
                true
            }
            _ => false,
        },
        &|line| match line {
            Line::Mark { chunk, .. } => {
                *chunk = 9999;
                true
            }
            _ => false,
        },
    ] {
        let (lines, place) = changed(change);
        refuse(&lines, place);
    }
    assert!(build(copy.path(), &[]).is_err());
}
