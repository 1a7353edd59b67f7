//! Replaces `getaddrinfo`, which looks up names of hosts.

use super::Next;
use crate::kernel::{current_thread, user, with};
use libc::{addrinfo, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

type Lookup = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const addrinfo,
    *mut *mut addrinfo,
) -> c_int;
type Free = unsafe extern "C" fn(*mut addrinfo);

static LOOKUP: Next = Next::new(c"getaddrinfo");
static FREE: Next = Next::new(c"freeaddrinfo");

/// A result and its socket address, in one allocation.
#[repr(C)]
struct Entry {
    info: addrinfo,
    address: [u8; 28],
}

/// Replaces the C library's `getaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    out: *mut *mut addrinfo,
) -> c_int {
    if current_thread().is_none() {
        // SAFETY: passes on the caller's arguments.
        return unsafe { LOOKUP.get::<Lookup>()(node, service, hints, out) };
    }
    // SAFETY: hints are null or valid.
    let hints = unsafe { hints.as_ref() };
    let (family, kind, flags) = hints.map_or((libc::AF_UNSPEC, 0, 0), |hints| {
        (hints.ai_family, hints.ai_socktype, hints.ai_flags)
    });
    let port = match user::string(service as usize) {
        Err(_) => 0,
        Ok(service) => match (service.parse::<u16>(), service.as_str()) {
            (Ok(port), _) => port,
            (_, "http") => 80,
            (_, "https") => 443,
            _ => return libc::EAI_SERVICE,
        },
    };
    let ips = match user::string(node as usize) {
        Ok(name) => match with(|kernel| kernel.resolve(&name)) {
            Some(ips) => ips,
            None => return libc::EAI_AGAIN,
        },
        Err(_) if flags & libc::AI_PASSIVE != 0 => {
            vec![
                IpAddr::from(Ipv4Addr::UNSPECIFIED),
                Ipv6Addr::UNSPECIFIED.into(),
            ]
        }
        Err(_) => vec![
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ],
    };
    let kinds: &[(c_int, c_int)] = &[
        (libc::SOCK_STREAM, libc::IPPROTO_TCP),
        (libc::SOCK_DGRAM, libc::IPPROTO_UDP),
    ];
    let mut first: *mut addrinfo = std::ptr::null_mut();
    // Results are added at the front of the list, so the order is reversed.
    for ip in ips.into_iter().rev() {
        let own = if ip.is_ipv4() {
            libc::AF_INET
        } else {
            libc::AF_INET6
        };
        if family != libc::AF_UNSPEC && family != own {
            continue;
        }
        for &(own_kind, protocol) in kinds
            .iter()
            .rev()
            .filter(|entry| kind == 0 || entry.0 == kind)
        {
            let bytes = user::address_bytes(own, SocketAddr::new(ip, port));
            let mut address = [0; 28];
            address[..bytes.len()].copy_from_slice(&bytes);
            // SAFETY: all-zero is a valid `addrinfo`.
            let mut info: addrinfo = unsafe { std::mem::zeroed() };
            info.ai_family = own;
            info.ai_socktype = own_kind;
            info.ai_protocol = protocol;
            info.ai_addrlen = bytes.len() as libc::socklen_t;
            info.ai_next = first;
            let entry = Box::into_raw(Box::new(Entry { info, address }));
            // SAFETY: the entry has just been allocated.
            unsafe {
                (*entry).info.ai_addr = (&raw mut (*entry).address).cast();
                first = &raw mut (*entry).info;
            }
        }
    }
    if first.is_null() {
        return libc::EAI_NONAME;
    }
    // SAFETY: the caller passed a pointer for the result.
    unsafe { *out = first };
    0
}

/// Replaces the C library's `freeaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freeaddrinfo(mut list: *mut addrinfo) {
    if current_thread().is_none() {
        // SAFETY: passes on the caller's argument.
        return unsafe { FREE.get::<Free>()(list) };
    }
    while !list.is_null() {
        // SAFETY: `getaddrinfo` above has created the list from boxes, on a thread of this host.
        unsafe {
            let next = (*list).ai_next;
            drop(Box::from_raw(list.cast::<Entry>()));
            list = next;
        }
    }
}
