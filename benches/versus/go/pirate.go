package main

import "sync/atomic"

// mostBuddies is how many buddies a pirate keeps.
const mostBuddies = 10

// delivery is how many messages each pirate gets before the Goodbye.
const delivery = 5

// kind says what a message is about.
type kind uint8

const (
	hello    kind = iota // name, and fsm for answers
	nameDrop             // name and address of another pirate
	goldCoin             // value: how much; name: from whom
	chat                 // value: the period in milliseconds
	goodbye
)

// message is what a pirate is told.
type message struct {
	kind    kind
	name    uint32
	value   uint32
	address chan<- message
	fsm     chan<- answer
}

// answer is what the FSM is told: that everything is delivered, or one pirate's last word.
type answer struct {
	delivered bool
	booty     uint32
	seen      uint32
}

// buddy is another pirate that one knows.
type buddy struct {
	name    uint32
	gifts   uint32
	address chan<- message
}

// pirate is a pirate's state.
type pirate struct {
	name       uint32
	seen       uint32
	booty      uint32
	chatPeriod uint32
	fsm        chan<- answer
	buddies    []buddy
}

// sail is a pirate's life. missing counts the pirates that do not have all of their delivery.
func sail(mailbox <-chan message, missing *atomic.Int32) {
	p := pirate{}
	for m := range mailbox {
		p.seen++
		switch m.kind {
		case hello:
			p.name, p.fsm = m.name, m.fsm
		case nameDrop:
			p.meet(m.name, m.address)
		case goldCoin:
			p.booty += m.value
			p.thank(m.name, m.value)
		case chat:
			p.chatPeriod = m.value
		case goodbye:
			p.fsm <- answer{booty: p.booty, seen: p.seen}
			return
		}
		if p.seen == delivery && missing.Add(-1) == 0 {
			p.fsm <- answer{delivered: true}
		}
	}
}

// meet keeps a new buddy: never itself, nobody twice, not more than mostBuddies.
func (p *pirate) meet(name uint32, address chan<- message) {
	if name == p.name || len(p.buddies) == mostBuddies {
		return
	}
	for i := range p.buddies {
		if p.buddies[i].name == name {
			return
		}
	}
	p.buddies = append(p.buddies, buddy{name: name, address: address})
}

// thank remembers a gift, if a buddy gave it.
func (p *pirate) thank(from, coins uint32) {
	for i := range p.buddies {
		if p.buddies[i].name == from {
			p.buddies[i].gifts += coins
			return
		}
	}
}
