//! The address of a client: the peer of its connection, or the address from a trusted proxy.

use axum::http::HeaderMap;
use std::net::{IpAddr, Ipv6Addr};

/// Returns the address of the client. Proxies append to `X-Forwarded-For`, so the last address that is not a trusted
/// proxy is the address of the client. Earlier addresses may be forged.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let peer = peer.to_canonical();
    if !trusted.contains(&peer) {
        return peer;
    }
    let lines = headers.get_all("x-forwarded-for").iter();
    let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    let hops = lines.iter().flat_map(|line| line.split(',')).rev();
    let mut client = peer;
    for hop in hops {
        let Ok(address) = hop.trim().parse::<IpAddr>() else {
            return client;
        };
        client = address.to_canonical();
        if !trusted.contains(&client) {
            return client;
        }
    }
    client
}

/// Returns the network that counts as one client: an IPv4 address, or the 64-bit prefix that a provider gives
/// to one customer.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            const HOST: u128 = u64::MAX as u128;
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !HOST))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_its_last_word() {
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let trusted = [proxy, "10.0.0.2".parse().unwrap()];
        let of = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
        };
        assert_eq!(of("9.9.9.9", &["1.1.1.1"]), "9.9.9.9");
        assert_eq!(of("10.0.0.1", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(of("::ffff:10.0.0.1", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(of("10.0.0.1", &["6.6.6.6, 1.1.1.1", "10.0.0.2"]), "1.1.1.1");
        assert_eq!(of("10.0.0.1", &["6.6.6.6, nonsense"]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn addresses_of_one_customer_are_one_client() {
        let of = |address: &str| network(address.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2::1"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:2:ffff:ffff:ffff:ffff"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:3::1"), "2001:db8:1:3::");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("10.0.0.2"), "10.0.0.2");
    }
}
