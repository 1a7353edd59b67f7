//! Tokens, with which clients authenticate.
//!
//! A token consists of the public id of a session and a secret of 256 random bits. Only the hash of the secret is
//! stored, and it is compared in constant time. Neither part is ever printed.

use crate::model::SessionId;
use data_encoding::BASE64URL_NOPAD;
use std::fmt;
use subtle::ConstantTimeEq;

/// The prefix of tokens, by which people and scanners for leaked secrets recognise them.
const PREFIX: &str = "courier_";

/// A token. See the [module](self).
#[derive(Clone)]
pub(crate) struct Token {
    pub session: SessionId,
    secret: [u8; 32],
}

impl Token {
    /// Creates a token from the system's random numbers.
    pub fn random() -> Result<Token, getrandom::Error> {
        let (mut session, mut secret) = ([0; 16], [0; 32]);
        getrandom::fill(&mut session)?;
        getrandom::fill(&mut secret)?;
        let session = SessionId(session);
        Ok(Token { session, secret })
    }

    /// Parses the result of [`Token::reveal`]; `None` if the text is not a token.
    pub fn parse(text: &str) -> Option<Token> {
        let encoded = text.strip_prefix(PREFIX)?;
        let mut bytes = [0; 48];
        if BASE64URL_NOPAD.decode_len(encoded.len()).ok()? != bytes.len() {
            return None;
        }
        BASE64URL_NOPAD
            .decode_mut(encoded.as_bytes(), &mut bytes)
            .ok()?;
        let (session, secret) = bytes.split_at(16);
        Some(Token {
            session: SessionId(session.try_into().ok()?),
            secret: secret.try_into().ok()?,
        })
    }

    /// Returns the text of the token, which the client sends.
    pub fn reveal(&self) -> String {
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&self.session.0);
        bytes[16..].copy_from_slice(&self.secret);
        format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
    }

    /// Returns the stored part of the token.
    pub fn proof(&self) -> [u8; 32] {
        *blake3::hash(&self.secret).as_bytes()
    }

    /// True if `proof` was stored for this token.
    pub fn proves(&self, proof: &[u8; 32]) -> bool {
        self.proof().ct_eq(proof).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_proves_itself_only() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        let read = Token::parse(&one.reveal()).unwrap();
        assert_eq!(read.session, one.session);
        assert!(read.proves(&one.proof()));
        assert!(!read.proves(&other.proof()));
    }

    #[test]
    fn what_is_no_token_is_none() {
        let good = Token::random().unwrap().reveal();
        let cut = &good[..good.len() - 1];
        let long = format!("{good}A");
        for wrong in ["", "courier_", "courier_!!!", cut, &long, &good[1..], "ß"] {
            assert!(Token::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = Token::random().unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
