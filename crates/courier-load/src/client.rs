//! A client of the service, for the load generator and the tests.
//!
//! It does not retry requests or reconnect.

mod socket;

pub use socket::{ServerMessage, Socket};

use bytes::Bytes;
use corsair_courier::{ConversationId, Message, UserId};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::{self, Display};
use tokio::net::TcpStream;

/// An error of a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The node answered with an error.
    #[error("the node answered {status}: {body}")]
    Refused {
        /// The status code of the answer.
        status: u16,
        /// The body of the answer.
        body: String,
    },
    /// The node sent an unexpected answer.
    #[error("the node said what is not expected: {0}")]
    Unexpected(String),
}

impl ClientError {
    fn connection(error: impl Display) -> ClientError {
        ClientError::Connection(error.to_string())
    }

    /// Returns the status, if the node answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// A connection for requests, one at a time.
#[derive(Debug)]
pub struct Http {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

/// A logged-in user.
#[derive(Clone, Deserialize)]
pub struct Login {
    /// The number of the user.
    pub user: UserId,
    /// The token of the login.
    pub token: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token must not be printed.
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A message that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PostReceipt {
    /// The message's position in its conversation, counted from 0.
    pub number: u64,
    /// True if the node had already stored the message.
    pub repeated: bool,
}

impl Http {
    /// Connects to a node at `host:port`.
    ///
    /// # Errors
    /// If no node accepts the connection.
    pub async fn connect(host: &str) -> Result<Http, ClientError> {
        let stream = TcpStream::connect(host)
            .await
            .map_err(ClientError::connection)?;
        stream.set_nodelay(true).map_err(ClientError::connection)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(ClientError::connection)?;
        tokio::spawn(connection);
        Ok(Http {
            sender,
            host: host.to_owned(),
        })
    }

    /// Sends a request and returns the answer, with any status.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(body.into()))
            .map_err(ClientError::connection)?;
        self.sender.ready().await.map_err(ClientError::connection)?;
        let answer = self
            .sender
            .send_request(request)
            .await
            .map_err(ClientError::connection)?;
        let status = answer.status();
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(ClientError::connection)?;
        Ok((status, body.to_bytes()))
    }

    /// Sends JSON with a token, and reads the answer, whose status must be a success.
    async fn call<T: serde::de::DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        token: &str,
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![(CONTENT_TYPE.as_str(), "application/json")];
        if !token.is_empty() {
            headers.push((AUTHORIZATION.as_str(), &bearer));
        }
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let body = serde_json::to_vec(body).map_err(ClientError::connection)?;
        let (status, answer) = self.send(method, path, &headers, body).await?;
        if !status.is_success() {
            return Err(ClientError::Refused {
                status: status.as_u16(),
                body: String::from_utf8_lossy(&answer).into_owned(),
            });
        }
        serde_json::from_slice(&answer).map_err(|error| ClientError::Unexpected(error.to_string()))
    }

    /// Creates a user.
    ///
    /// # Errors
    /// If the node refuses.
    pub async fn create_user(&mut self, name: &str, password: &str) -> Result<Login, ClientError> {
        let body = json!({ "name": name, "password": password });
        self.call(Method::POST, "/users", "", None, &body).await
    }

    /// Logs in.
    ///
    /// # Errors
    /// If the node refuses.
    pub async fn log_in(&mut self, name: &str, password: &str) -> Result<Login, ClientError> {
        let body = json!({ "name": name, "password": password });
        self.call(Method::POST, "/sessions", "", None, &body).await
    }

    /// Begins a conversation.
    ///
    /// # Errors
    /// If the node refuses.
    pub async fn converse(
        &mut self,
        token: &str,
        recipients: &[UserId],
    ) -> Result<ConversationId, ClientError> {
        #[derive(Deserialize)]
        struct CreatedConversation {
            id: ConversationId,
        }
        let body = json!({ "recipients": recipients });
        let created: CreatedConversation = self
            .call(Method::POST, "/conversations", token, None, &body)
            .await?;
        Ok(created.id)
    }

    /// Posts a message, with an idempotency key or without.
    ///
    /// # Errors
    /// If the node refuses, or the connection fails; in the second case the node may have stored
    /// the message.
    pub async fn post(
        &mut self,
        token: &str,
        conversation: ConversationId,
        text: &str,
        key: Option<&str>,
    ) -> Result<PostReceipt, ClientError> {
        #[derive(Serialize)]
        struct Body<'a> {
            text: &'a str,
        }
        let path = format!("/conversations/{conversation}/messages");
        self.call(Method::POST, &path, token, key, &Body { text })
            .await
    }

    /// Returns the first page of a conversation's messages after the given number.
    ///
    /// # Errors
    /// If the node refuses.
    pub async fn history(
        &mut self,
        token: &str,
        conversation: ConversationId,
        after: u64,
    ) -> Result<Vec<Message>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            messages: Vec<Message>,
        }
        let path = format!("/conversations/{conversation}/messages?after={after}");
        let page: Page = self
            .call(Method::GET, &path, token, None, &Value::Null)
            .await?;
        Ok(page.messages)
    }

    /// Returns the metrics of the node as text.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn metrics(&mut self) -> Result<String, ClientError> {
        let (_, body) = self.send(Method::GET, "/metrics", &[], "").await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}
