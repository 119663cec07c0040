//! Which source of a setting counts, and what is refused.

use super::*;

fn file(text: &str) -> File {
    File::parse(text, Path::new("/etc/tidemark")).unwrap()
}

fn property(text: &str) -> Property {
    text.parse().unwrap()
}

fn decided(typed: Typed, text: &str) -> Settings {
    Settings::decide(typed, Vec::new(), file(text)).unwrap()
}

#[track_caller]
fn is_refused(typed: Typed, text: &str, reason: &str) {
    let error = Settings::decide(typed, Vec::new(), file(text)).unwrap_err();
    assert_eq!(error.to_string(), reason);
}

#[test]
fn without_a_word_everything_is_on_this_machine() {
    let settings = decided(Typed::default(), "");
    assert_eq!(settings.kafka, KafkaSettings::at("127.0.0.1:9092"));
    assert_eq!(settings.store.contact_points, ["127.0.0.1:9042"]);
    assert_eq!(settings.store.keyspace, "tidemark");
    assert_eq!(settings.log, LogSettings::default());
}

#[test]
fn what_was_typed_counts_more_than_the_file() {
    let text = "keyspace = 'filed'\n[kafka]\nbootstrap = 'file:1'\n[cql]\ncontact_points = ['file:2']\nuser = 'filed'";
    let filed = decided(Typed::default(), text);
    assert_eq!(filed.kafka.bootstrap_servers, "file:1");
    assert_eq!(filed.store.contact_points, ["file:2"]);
    assert_eq!(
        (filed.store.keyspace.as_str(), filed.store.user.as_deref()),
        ("filed", Some("filed"))
    );

    let typed = Typed {
        kafka: Some("typed:1".to_owned()),
        cql: Some("typed:2, typed:3,".to_owned()),
        keyspace: Some("typed".to_owned()),
        ..Typed::default()
    };
    let settings = decided(typed, text);
    assert_eq!(settings.kafka.bootstrap_servers, "typed:1");
    assert_eq!(settings.store.contact_points, ["typed:2", "typed:3"]);
    assert_eq!(settings.store.keyspace, "typed");
}

#[test]
fn an_empty_variable_is_no_variable() {
    let typed = Typed {
        kafka: Some(String::new()),
        cql: Some(String::new()),
        cql_ca_file: Some(PathBuf::new()),
        ..Typed::default()
    };
    let settings = decided(typed, "[kafka]\nbootstrap = 'file:1'");
    assert_eq!(settings.kafka.bootstrap_servers, "file:1");
    assert_eq!(settings.store.contact_points, ["127.0.0.1:9042"]);
    assert_eq!(settings.store.ca_file, None);
}

#[test]
fn properties_of_all_sources_are_put_together() {
    let file = file("[kafka.properties]\na = 'file'\nb = 'file'\nc = 6000\nd = true");
    let variable = vec![property("b=variable"), property("e=variable")];
    let typed = Typed {
        kafka_properties: vec![property("e=flag=1")],
        ..Typed::default()
    };
    let settings = Settings::decide(typed, variable, file).unwrap();
    let expected = [
        ("a", "file"),
        ("b", "variable"),
        ("c", "6000"),
        ("d", "true"),
        ("e", "flag=1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(settings.kafka.properties, BTreeMap::from(expected));
}

#[test]
fn a_property_that_is_not_ours_to_give_away_is_refused() {
    let with = |text: &str| Typed {
        kafka_properties: vec![property(text)],
        ..Typed::default()
    };
    let rests = "cannot be set: Tidemark's correctness rests on its value";
    is_refused(
        with("acks=1"),
        "",
        &format!("the Kafka property acks {rests}, all"),
    );
    is_refused(
        with("auto.offset.reset=latest"),
        "",
        &format!("the Kafka property auto.offset.reset {rests}, error"),
    );
    is_refused(
        Typed::default(),
        "[kafka.properties]\n'bootstrap.servers' = 'x'",
        &format!("the Kafka property bootstrap.servers {rests}, that of --kafka"),
    );
    decided(with("acks=all"), "");
}

#[test]
fn properties_stand_one_a_line_in_their_variable() {
    let properties = parse_properties("a=1\n\n sasl.password=p=q;r,s \n").unwrap();
    assert_eq!(
        properties,
        [property("a=1"), property("sasl.password=p=q;r,s ")]
    );
    let error = parse_properties("a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "TIDEMARK_KAFKA_PROPERTIES: \"a\" is not NAME=VALUE"
    );
}

#[test]
fn a_key_that_the_file_may_not_have_is_refused() {
    for text in [
        "keyspaces = 'x'",
        "[kafka]\nservers = 'x'",
        "[cql]\npassword = 'x'",
        "[gatway]",
        "[log]\nlevel = 1",
    ] {
        let error = File::parse(text, Path::new("")).unwrap_err();
        assert!(error.to_string().contains("unknown field"), "{error}");
    }
}

#[test]
fn files_that_the_file_names_are_beside_it() {
    let file =
        file("[cql]\npassword_file = 'secret'\nca_file = '/ca.pem'\nrequest_timeout = '20s'");
    assert_eq!(
        file.cql.password_file.as_deref(),
        Some(Path::new("/etc/tidemark/secret"))
    );
    assert_eq!(file.cql.ca_file.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!(
        file.cql.request_timeout,
        Some(std::time::Duration::from_secs(20))
    );
}

#[test]
fn a_password_comes_from_its_file_and_needs_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hunter 2 \r\n").unwrap();
    assert_eq!(read_password(&secret).unwrap(), "hunter 2 ");
    let typed = Typed {
        cql_password_file: Some(secret),
        ..Typed::default()
    };
    is_refused(
        typed,
        "",
        "--cql-user: there is a password, but no user to log in as",
    );
}

#[test]
fn a_named_file_must_be_there_and_the_default_one_need_not() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read_file(Some(&folder.path().join("absent.toml"))).is_err());
    let path = folder.path().join("there.toml");
    std::fs::write(&path, "keyspace = 'x'").unwrap();
    assert_eq!(
        read_file(Some(&path)).unwrap().keyspace.as_deref(),
        Some("x")
    );
    std::fs::write(&path, "keyspace = ").unwrap();
    let error = read_file(Some(&path)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} is not a settings file", path.display())
    );
}

#[test]
fn a_process_of_ours_finds_the_same_settings_in_its_environment() {
    let typed = Typed {
        kafka: Some("k:1".to_owned()),
        keyspace: Some("demo".to_owned()),
        kafka_properties: vec![property("a=1"), property("b=2")],
        ..Typed::default()
    };
    let environment = decided(typed, "").environment;
    let value = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.to_str())
    };
    assert_eq!(value("TIDEMARK_KAFKA"), Some("k:1"));
    assert_eq!(value("TIDEMARK_KEYSPACE"), Some("demo"));
    assert_eq!(value("TIDEMARK_KAFKA_PROPERTIES"), Some("a=1\nb=2\n"));
    assert_eq!(value("TIDEMARK_CQL_USER"), None);
}
