//! Somebody who talks to the gateway: calls as they are, and verbs that expect to be let.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::{Answer, Scene, until};

/// A user or a service of a scene.
#[derive(Debug, Clone)]
pub struct User<'s> {
    scene: &'s Scene<'s>,
    name: Option<String>,
    is_service: bool,
    gateway: Option<usize>,
}

/// A body as it is sent.
enum Sent {
    Nothing,
    Json(Value),
    Raw(&'static str, String),
}

// Calls as they are.
impl<'s> User<'s> {
    pub(crate) fn new(scene: &'s Scene<'s>, name: Option<&str>, is_service: bool) -> Self {
        Self {
            scene,
            name: name.map(str::to_owned),
            is_service,
            gateway: None,
        }
    }

    /// The same, through this gateway and no other.
    #[must_use]
    pub fn through(mut self, gateway: usize) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// The same user, called for by a service.
    #[must_use]
    pub fn by_service(mut self) -> Self {
        self.is_service = true;
        self
    }

    /// Their name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("nobody")
    }

    /// GET, as of now: waits for nothing.
    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, Sent::Nothing).await
    }

    /// GET, by a path of its own: to be awaited beside other things.
    pub async fn get_owned(&self, path: String) -> Answer {
        self.get(&path).await
    }

    /// GET, once the views have what the scene wrote before.
    pub async fn read(&self, path: &str) -> Answer {
        let and = if path.contains('?') { '&' } else { '?' };
        let path = match self.scene.at() {
            at if at.is_empty() => path.to_owned(),
            at => format!("{path}{and}{at}"),
        };
        until("a read that is not stale", crate::PATIENCE, async || {
            let answer = self.get(&path).await;
            if answer.is_stale() {
                Err(answer)
            } else {
                Ok(answer)
            }
        })
        .await
    }

    /// PUT.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PUT, path, Sent::Json(body)).await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PATCH, path, Sent::Json(body)).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, Sent::Json(body)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, Sent::Nothing).await
    }

    /// Any call with any body.
    pub async fn raw(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: &str,
    ) -> Answer {
        self.call(method, path, Sent::Raw(content_type, body.to_owned()))
            .await
    }

    async fn call(&self, method: Method, path: &str, sent: Sent) -> Answer {
        let gateway = match self.gateway {
            Some(index) => self.scene.town().gateways()[index].url(),
            None => self.scene.any_gateway(),
        };
        let call = format!("{} {method} {path}", self.name());
        let url = self.url(&gateway, path);
        let mut request = self.scene.client().request(method, url);
        if let Some(name) = &self.name {
            request = request.header("X-User", self.scene.on_wire(name));
        }
        if self.is_service {
            request = request.header("X-Service", "true");
        }
        let mut conversation = conversation_in(path);
        request = match sent {
            Sent::Nothing => request,
            Sent::Json(body) => {
                let named = body["conversation"].as_str().map(str::to_owned);
                conversation = conversation.or(named);
                request.json(&self.scene.body_on_wire(&body))
            }
            Sent::Raw(content_type, body) => {
                request.header("Content-Type", content_type).body(body)
            }
        };
        let answer = request
            .send()
            .await
            .unwrap_or_else(|error| panic!("{call}: {error:?}"));
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer
            .text()
            .await
            .unwrap_or_else(|error| panic!("{call}: {error:?}"));
        let text = self.scene.plain(&text);
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if let (Some(conversation), Some(position)) = (conversation, body["position"].as_str()) {
            self.scene.wrote(&conversation, position);
        }
        Answer {
            call,
            status,
            headers,
            body,
            text,
        }
    }

    /// A path below /v1, as tests write it: the segment after `conversations` or `sessions` is a conversation's name. A
    /// path that begins with two slashes is below nothing.
    fn url(&self, gateway: &str, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = Url::parse(gateway).expect("a gateway's address is one");
        if let Some(path) = path.strip_prefix("//") {
            url.set_path(path);
        } else {
            let mut segments = url.path_segments_mut().expect("http has paths");
            segments.push("v1");
            let mut is_name = false;
            for segment in path.split('/').skip(1) {
                if is_name {
                    segments.push(&self.scene.on_wire(&from_segment(segment)));
                } else {
                    segments.push(segment);
                }
                is_name = matches!(segment, "conversations" | "sessions");
            }
        }
        if !query.is_empty() {
            let pairs = query
                .split('&')
                .map(|pair| match pair.strip_prefix("actor=") {
                    Some(name) => format!("actor={}", self.scene.on_wire(name)),
                    None => pair.to_owned(),
                });
            url.set_query(Some(&pairs.collect::<Vec<_>>().join("&")));
        }
        url
    }
}

fn conversation_in(path: &str) -> Option<String> {
    let path = path.split('?').next()?;
    let mut segments = path.split('/');
    segments.find(|segment| matches!(*segment, "conversations" | "sessions"))?;
    segments.next().map(from_segment)
}

/// A path within a conversation.
fn in_conversation(conversation: &str, path: &str) -> String {
    format!("/conversations/{}{path}", segment(conversation))
}

/// What would end a path's segment, and how it stands there.
const IN_SEGMENTS: [(&str, &str); 3] = [("%", "%25"), ("/", "%2F"), ("?", "%3F")];

/// A name as a segment of a path, as [`User`]s take paths.
fn segment(name: &str) -> String {
    IN_SEGMENTS
        .iter()
        .fold(name.to_owned(), |text, (plain, encoded)| {
            text.replace(plain, encoded)
        })
}

fn from_segment(segment: &str) -> String {
    let pairs = IN_SEGMENTS.iter().rev();
    pairs.fold(segment.to_owned(), |text, (plain, encoded)| {
        text.replace(encoded, plain)
    })
}

// Verbs. Each expects to be let.
impl User<'_> {
    /// Creates a conversation.
    pub async fn creates(&self, conversation: &str, body: Value) {
        self.put(&in_conversation(conversation, ""), body)
            .await
            .is(202);
    }

    /// Changes a conversation.
    pub async fn changes(&self, conversation: &str, body: Value) {
        self.patch(&in_conversation(conversation, ""), body)
            .await
            .is(202);
    }

    /// Adds members.
    pub async fn adds(&self, conversation: &str, members: &[&str]) {
        let path = in_conversation(conversation, "/members");
        self.post(&path, json!({"add": members})).await.is(202);
    }

    /// Removes members.
    pub async fn removes(&self, conversation: &str, members: &[&str]) {
        let path = in_conversation(conversation, "/members");
        self.post(&path, json!({"remove": members})).await.is(202);
    }

    /// Leaves.
    pub async fn leaves(&self, conversation: &str) {
        self.removes(conversation, &[self.name()]).await;
    }

    /// Sends a text.
    pub async fn says(&self, conversation: &str, body: &str) {
        self.sends(conversation, json!({"body": body})).await;
    }

    /// Sends texts that say which they are of these, from 1, in one go: as a service, in the user's name.
    pub async fn says_many(&self, conversation: &str, count: usize) {
        let line = |number| {
            json!({
                "conversation_id": conversation, "actor": self.name(), "type": "MessageSent",
                "payload": {"body": format!("{number} by {}", self.name())},
            })
        };
        let lines: Vec<Value> = (1..=count).map(line).collect();
        for answer in self.scene.service().appends(&lines).await {
            assert!(answer["position"].is_string(), "{answer}");
        }
    }

    /// Sends a message.
    pub async fn sends(&self, conversation: &str, body: Value) {
        self.post(&in_conversation(conversation, "/messages"), body)
            .await
            .is(202);
    }

    /// Edits a message of theirs.
    pub async fn edits(&self, conversation: &str, seq: u64, body: Value) {
        let path = in_conversation(conversation, &format!("/messages/{seq}"));
        self.patch(&path, body).await.is(202);
    }

    /// Takes a message back.
    pub async fn recalls(&self, conversation: &str, seq: u64) {
        let path = in_conversation(conversation, &format!("/messages/{seq}?for=everyone"));
        self.delete(&path).await.is(202);
    }

    /// Hides a message for themselves.
    pub async fn hides(&self, conversation: &str, seq: u64) {
        let path = in_conversation(conversation, &format!("/messages/{seq}?for=me"));
        self.delete(&path).await.is(202);
    }

    /// Has read up to a seq.
    pub async fn reads_to(&self, conversation: &str, seq: u64) {
        let path = in_conversation(conversation, "/read");
        self.put(&path, json!({"seq": seq})).await.is(202);
    }

    /// Marks unread from a seq on.
    pub async fn marks_unread(&self, conversation: &str, from_seq: u64) {
        let path = in_conversation(conversation, "/unread");
        self.put(&path, json!({"from_seq": from_seq})).await.is(202);
    }

    /// Changes settings of their own.
    pub async fn sets(&self, conversation: &str, body: Value) {
        let path = in_conversation(conversation, "/session");
        self.patch(&path, body).await.is(202);
    }

    /// Clears their history.
    pub async fn clears(&self, conversation: &str) {
        self.delete(&in_conversation(conversation, "/history"))
            .await
            .is(202);
    }

    /// Takes a conversation off their list.
    pub async fn takes_off_list(&self, conversation: &str) {
        self.delete(&format!("/sessions/{}", segment(conversation)))
            .await
            .is(202);
    }

    /// One of their devices has stored up to a seq.
    pub async fn acks(&self, conversation: &str, seq: u64, device: &str) {
        let body = json!({"conversation": conversation, "seq": seq, "device": device});
        self.put("/inbox/ack", body).await.is(202);
    }

    /// Appends lines in bulk, as a service. Returns what was said of each, in order.
    pub async fn appends(&self, lines: &[Value]) -> Vec<Value> {
        let answer = self.tries_to_append(lines).await;
        self.has_appended(lines, answer)
    }

    /// Sends lines to be appended, whatever the answer.
    pub async fn tries_to_append(&self, lines: &[Value]) -> Answer {
        let body: String = lines
            .iter()
            .map(|line| format!("{}\n", self.scene.body_on_wire(line)))
            .collect();
        self.raw(Method::POST, "/events", "application/x-ndjson", &body)
            .await
    }

    /// What an answer to a bulk append says of each line, in order.
    pub fn has_appended(&self, lines: &[Value], answer: Answer) -> Vec<Value> {
        assert_eq!(answer.status, 200, "{}: {}", answer.call, answer.text);
        let answers = of_lines(&answer.text);
        assert_eq!(answers.len(), lines.len(), "an answer a line");
        for (line, answer) in lines.iter().zip(&answers) {
            let (conversation, position) = (&line["conversation_id"], &answer["position"]);
            if let (Some(conversation), Some(position)) = (conversation.as_str(), position.as_str())
            {
                self.scene.wrote(conversation, position);
            }
        }
        answers
    }
}

/// The answers of a bulk append: a JSON array, or one object a line.
fn of_lines(text: &str) -> Vec<Value> {
    if let Ok(Value::Array(answers)) = serde_json::from_str(text) {
        return answers;
    }
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("an answer is JSON"))
        .collect()
}

/// A path whose query does not say where the list begins: a cursor does.
fn without_place(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let is_place = |pair: &&str| pair.starts_with("before=") || pair.starts_with("after=");
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_place(pair)).collect();
    if rest.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", rest.join("&"))
    }
}

// Reads, each once the views have what the scene wrote before.
impl User<'_> {
    /// Everything on a list, page by page.
    pub async fn all(&self, path: &str, list: &str) -> Vec<Value> {
        const MOST_PAGES: usize = 1_000;
        let onward = without_place(path);
        let and = if onward.contains('?') { '&' } else { '?' };
        let mut entries = Vec::new();
        let mut next = path.to_owned();
        for _ in 0..MOST_PAGES {
            let mut page = self.read(&next).await.is(200);
            match page[list].take() {
                Value::Array(more) => entries.extend(more),
                other => panic!("{next}: {list} is {other}"),
            }
            match &page["next_cursor"] {
                Value::String(cursor) => next = format!("{onward}{and}cursor={cursor}"),
                Value::Null => return entries,
                other => panic!("{next}: next_cursor is {other}"),
            }
        }
        panic!("{path}: the list does not end");
    }

    /// Their list.
    pub async fn sessions(&self) -> Vec<Value> {
        self.all("/sessions", "sessions").await
    }

    /// The conversations on their list, in its order.
    pub async fn listed(&self) -> Vec<String> {
        let sessions = self.sessions().await;
        let id = |session: &Value| session["conversation_id"].as_str().unwrap().to_owned();
        sessions.iter().map(id).collect()
    }

    /// One session of their list.
    pub async fn session(&self, conversation: &str) -> Value {
        let sessions = self.sessions().await;
        let found = sessions
            .into_iter()
            .find(|session| session["conversation_id"] == conversation);
        found.unwrap_or_else(|| panic!("{conversation} is not on {}'s list", self.name()))
    }

    /// The sum of what is unread on their list.
    pub async fn total_unread(&self) -> Value {
        self.read("/sessions").await.is(200)["total_unread"].clone()
    }

    /// A page of a conversation's history.
    pub async fn history(&self, conversation: &str, query: &str) -> Vec<Value> {
        let path = in_conversation(conversation, &format!("/messages?{query}"));
        let mut page = self.read(&path).await.is(200);
        match page["messages"].take() {
            Value::Array(messages) => messages,
            other => panic!("{path}: messages is {other}"),
        }
    }

    /// The seqs of a page of a conversation's history.
    pub async fn seqs(&self, conversation: &str, query: &str) -> Vec<u64> {
        let messages = self.history(conversation, query).await;
        messages
            .iter()
            .map(|message| message["seq"].as_u64().unwrap())
            .collect()
    }

    /// What mentions them by name and is unread, as `(conversation, seq)`.
    pub async fn mentions(&self) -> Vec<(String, u64)> {
        let place = |mention: &Value| {
            let conversation = mention["conversation_id"].as_str().unwrap();
            (conversation.to_owned(), mention["seq"].as_u64().unwrap())
        };
        self.all("/mentions", "mentions")
            .await
            .iter()
            .map(place)
            .collect()
    }

    /// What a device of theirs has not stored, in pages of `limit`.
    pub async fn pulls(&self, device: &str, limit: usize) -> Vec<Value> {
        self.all(&format!("/inbox?device={device}&limit={limit}"), "messages")
            .await
    }

    /// The seqs of one conversation that a device of theirs has not stored.
    pub async fn pending(&self, conversation: &str, device: &str) -> Vec<u64> {
        let pulled = self.pulls(device, 500).await;
        let ours = pulled
            .iter()
            .filter(|message| message["conversation_id"] == conversation);
        ours.map(|message| message["seq"].as_u64().unwrap())
            .collect()
    }
}
