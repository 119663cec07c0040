//! What operators do: set up, open, cut over, build and drop generations.

use tidemark_fold::{DedupeWindow, GenerationSettings, ViewName, roaming::Roaming};
use tidemark_store::{
    Activation, ConnectError, CreateError, DropError, FoldVersion, GenerationNo, GenerationState,
    OpenError, RecordedGeneration, SetupError, SetupSettings, Store, StoreSettings,
};

use crate::world::{FOLD, PARTITION, World, asked, changed, message, small};

const SECOND: GenerationNo = GenerationNo::FIRST.next();

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_set_up_may_be_repeated_and_run_twice_at_once() {
    World::bare(|world| async move {
        let other = world.another_store().await;
        let settings = asked();
        let (one, two) = tokio::join!(world.store.setup(&settings), other.setup(&settings));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one, two);
        assert_eq!(one.log, settings.log);
        for view in ViewName::ALL {
            let first = RecordedGeneration {
                no: GenerationNo::FIRST,
                fold_version: FOLD,
                settings: small(),
                state: GenerationState::Built,
            };
            assert_eq!(one.active[&view], first);
            assert_eq!(world.store.generations(view).await.unwrap(), [first]);
            let active = world.store.active_generation(view).await.unwrap();
            assert_eq!(active, Some(GenerationNo::FIRST));
        }
        // Other settings of a generation are for a rebuild: what is recorded stays.
        let others = SetupSettings {
            generations: Default::default(),
            fold_version: FoldVersion::new(2),
            ..asked()
        };
        assert_eq!(other.setup(&others).await.unwrap(), one);
        world.open::<Roaming>().await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_set_up_that_stopped_halfway_goes_on() {
    World::bare(|world| async move {
        let keyspace = &world.keyspace;
        world
            .cql(&format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ))
            .await;
        world.store.setup(&asked()).await.unwrap();
        world.cql(&format!("DROP TABLE {keyspace}.inbox_1_places")).await;
        world.cql(&format!("DROP TABLE {keyspace}.log")).await;
        world.cql(&format!("TRUNCATE {keyspace}.active_generations")).await;
        let store = world.another_store().await;
        let recorded = store.setup(&asked()).await.unwrap();
        assert_eq!(recorded.active.len(), 3);
        store
            .open::<tidemark_fold::inbox::Inbox>(GenerationNo::FIRST, FOLD)
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_set_up_for_another_log_is_refused_and_says_what_differs() {
    World::alone(|world| async move {
        let mut others = vec![];
        for setting in ["topic", "partitions", "dedupe_window_ms", "dedupe_ids"] {
            let mut other = asked();
            let log = &mut other.log;
            let DedupeWindow { millis, ids } = &mut log.settings.dedupe;
            match setting {
                "topic" => log.topic.push_str(".2"),
                "partitions" => log.settings.partitions += 1,
                "dedupe_window_ms" => *millis += 1,
                _ => *ids += 1,
            }
            others.push((setting, other));
        }
        for (wanted, other) in others {
            match world.store.setup(&other).await {
                Err(SetupError::OtherLog {
                    setting,
                    recorded,
                    asked,
                    ..
                }) => {
                    assert_eq!(setting, wanted);
                    assert_ne!(recorded, asked);
                }
                other => panic!("{wanted}: {other:?}"),
            }
        }
        assert_eq!(world.store.log_settings().await.unwrap(), Some(asked().log));
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn settings_that_cannot_be_are_refused_before_anything_is_made() {
    World::bare(|world| async move {
        let mut settings = asked();
        let broken = GenerationSettings {
            block_seqs: 0,
            ..small()
        };
        settings.generations.insert(ViewName::Sessions, broken);
        let refused = world.store.setup(&settings).await;
        assert!(
            matches!(
                refused,
                Err(SetupError::Setting {
                    setting: "block_seqs"
                })
            ),
            "{refused:?}"
        );
        assert_eq!(world.store.log_settings().await.unwrap(), None);
        let early = world.store.open::<Roaming>(GenerationNo::FIRST, FOLD).await;
        assert!(matches!(early, Err(OpenError::NoLog)), "{early:?}");
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_generation_opens_for_its_own_fold_version_only() {
    World::alone(|world| async move {
        let theirs = FoldVersion::new(2);
        match world
            .store
            .open::<Roaming>(GenerationNo::FIRST, theirs)
            .await
        {
            Err(OpenError::OtherFoldVersion { built_by, ours, .. }) => {
                assert_eq!((built_by, ours), (FOLD, theirs));
            }
            other => panic!("{other:?}"),
        }
        let missing = world.store.open::<Roaming>(SECOND, FOLD).await;
        assert!(
            matches!(missing, Err(OpenError::NoGeneration { .. })),
            "{missing:?}"
        );
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn of_two_cutovers_at_once_one_wins_and_the_other_is_told() {
    World::alone(|world| async move {
        let third = SECOND.next();
        let view = ViewName::Inbox;
        let from = Some(GenerationNo::FIRST);
        let other = world.another_store().await;
        let (one, two) = tokio::join!(
            world.store.activate(view, from, SECOND),
            other.activate(view, from, third)
        );
        let winner = world.store.active_generation(view).await.unwrap().unwrap();
        let told = |no| {
            if no == winner {
                Activation::Active
            } else {
                Activation::Other(Some(winner))
            }
        };
        assert_eq!((one.unwrap(), two.unwrap()), (told(SECOND), told(third)));
        // Asked again, after an answer that was lost: it is so.
        let again = world.store.activate(view, from, winner).await.unwrap();
        assert_eq!(again, Activation::Active);
        let late = world
            .store
            .activate(view, None, GenerationNo::FIRST)
            .await
            .unwrap();
        assert_eq!(late, Activation::Other(Some(winner)));
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_generation_is_made_beside_the_first_used_and_dropped() {
    World::alone(|world| async move {
        let store = &world.store;
        let view = ViewName::Roaming;
        let second = RecordedGeneration {
            no: SECOND,
            fold_version: FOLD,
            settings: GenerationSettings {
                bucket_seqs: 9,
                ..small()
            },
            state: GenerationState::Building,
        };
        for _ in 0..2 {
            store.create_generation(view, &second).await.unwrap();
        }
        let otherwise = RecordedGeneration {
            settings: small(),
            ..second
        };
        let taken = store.create_generation(view, &otherwise).await;
        assert!(matches!(taken, Err(CreateError::Taken { .. })), "{taken:?}");

        let generation = store.open::<Roaming>(SECOND, FOLD).await.unwrap();
        assert_eq!(generation.settings().bucket_seqs, 9);
        let row = message(1, 5, "hello");
        let rows = changed("g1", |changes| {
            changes.rows.push((row.message.seq, row.clone()))
        });
        generation.write_rows(PARTITION, &rows).await.unwrap();

        let (building, built, dropping) = (
            GenerationState::Building,
            GenerationState::Built,
            GenerationState::Dropping,
        );
        let early = store.drop_generation(view, SECOND).await;
        assert!(
            matches!(early, Err(DropError::NotMarked { .. })),
            "{early:?}"
        );
        let change = |from, to| store.change_generation_state(view, SECOND, from, to);
        assert!(change(building, built).await.unwrap());
        assert!(change(building, built).await.unwrap(), "it is so already");
        assert!(!change(building, dropping).await.unwrap());
        assert!(change(built, dropping).await.unwrap());
        let closed = store.open::<Roaming>(SECOND, FOLD).await;
        assert!(
            matches!(closed, Err(OpenError::NoGeneration { .. })),
            "{closed:?}"
        );
        for _ in 0..2 {
            store.drop_generation(view, SECOND).await.unwrap();
        }
        let recorded = store.generations(view).await.unwrap();
        let states: Vec<_> = recorded.iter().map(|it| (it.no, it.state)).collect();
        let dropped = (SECOND, GenerationState::Dropped);
        assert_eq!(states, [(GenerationNo::FIRST, built), dropped]);
        assert!(store.checkpoints(view, SECOND).await.unwrap().is_empty());
        let again = store.create_generation(view, &second).await;
        assert!(matches!(again, Err(CreateError::Taken { .. })), "{again:?}");
        let active = store.drop_generation(view, GenerationNo::FIRST).await;
        assert!(
            matches!(active, Err(DropError::Active { .. })),
            "{active:?}"
        );
        world.open::<Roaming>().await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_server_that_does_not_answer_is_worth_another_try() {
    let settings = StoreSettings {
        contact_points: vec!["127.0.0.1:1".to_owned()],
        ..StoreSettings::default()
    };
    let error = Store::connect(&settings).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let none = StoreSettings {
        contact_points: vec![],
        ..settings
    };
    let error = Store::connect(&none).await.unwrap_err();
    assert!(matches!(error, ConnectError::Setting { .. }) && !error.is_transient());
}
