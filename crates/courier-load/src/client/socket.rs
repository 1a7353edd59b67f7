//! The WebSocket of a client.

use super::ClientError;
use corsair_courier::{ConversationId, Message, UserInfo};
use futures_util::{SinkExt, StreamExt};
use hyper::header::HeaderName;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message as Frame};

/// A frame of a node over a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum ServerMessage {
    /// A message of a conversation.
    #[serde(rename = "message:new")]
    Message {
        /// The sequence number of the message in the user's queue.
        sequence: u64,
        /// The message itself.
        message: Message,
    },
    /// Users who are online.
    #[serde(rename = "users:online")]
    Online {
        /// The number of users online.
        total: usize,
        /// Some of the online users.
        users: Vec<UserInfo>,
    },
    /// Users who came online.
    #[serde(rename = "users:connect")]
    Connect {
        /// The users who came online.
        users: Vec<UserInfo>,
    },
    /// Users who went offline.
    #[serde(rename = "users:disconnect")]
    Disconnect {
        /// The users who went offline.
        users: Vec<UserInfo>,
    },
    /// The title or the members of a conversation have changed.
    #[serde(rename = "conversation:changed")]
    Changed {
        /// The changed conversation.
        conversation: ConversationId,
    },
    /// The node reports an error of the client.
    #[serde(rename = "error")]
    Error {
        /// A code that programs can evaluate.
        code: String,
        /// A description for people.
        message: String,
    },
}

/// A WebSocket connection to a node.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Opens a socket at `host:port`. `query` follows `/ws`, for example `?after=7`.
    ///
    /// # Errors
    /// If the node refuses or cannot be reached.
    pub async fn open(host: &str, token: &str, query: &str) -> Result<Socket, ClientError> {
        Socket::open_with(
            host,
            query,
            &[("authorization", &format!("Bearer {token}"))],
        )
        .await
    }

    /// Opens a socket with these headers.
    ///
    /// # Errors
    /// If the node refuses or cannot be reached.
    pub async fn open_with(
        host: &str,
        query: &str,
        headers: &[(&str, &str)],
    ) -> Result<Socket, ClientError> {
        let stream = TcpStream::connect(host)
            .await
            .map_err(ClientError::connection)?;
        stream.set_nodelay(true).map_err(ClientError::connection)?;
        let mut request = format!("ws://{host}/ws{query}")
            .into_client_request()
            .map_err(ClientError::connection)?;
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(ClientError::connection)?;
            let value = value.parse().map_err(ClientError::connection)?;
            request.headers_mut().insert(name, value);
        }
        let config = WebSocketConfig::default().read_buffer_size(4 << 10);
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        match opened {
            Ok((stream, _)) => Ok(Socket { stream }),
            Err(SocketError::Http(answer)) => Err(ClientError::Refused {
                status: answer.status().as_u16(),
                body: answer
                    .body()
                    .as_ref()
                    .map_or_else(String::new, |body| String::from_utf8_lossy(body).into()),
            }),
            Err(error) => Err(ClientError::connection(error)),
        }
    }

    /// Waits for the next frame; `None` when the node has closed the socket.
    ///
    /// # Errors
    /// If the connection fails, or the frame is unexpected.
    pub async fn next(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        loop {
            match self.stream.next().await {
                Some(Ok(Frame::Text(text))) => {
                    return serde_json::from_str(&text)
                        .map(Some)
                        .map_err(|error| ClientError::Unexpected(format!("{error}: {text}")));
                }
                Some(Ok(Frame::Close(_))) | None => return Ok(None),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(ClientError::connection(error)),
            }
        }
    }

    /// Acknowledges everything up to a sequence.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn acknowledge(&mut self, sequence: u64) -> Result<(), ClientError> {
        let text = format!(r#"{{"type":"ack","sequence":{sequence}}}"#);
        self.send(Frame::Text(text.into())).await
    }

    /// Sends a frame unchanged.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn send(&mut self, frame: Frame) -> Result<(), ClientError> {
        self.stream
            .send(frame)
            .await
            .map_err(ClientError::connection)
    }

    /// Closes the socket with a close frame.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.stream
            .close(None)
            .await
            .map_err(ClientError::connection)
    }
}
