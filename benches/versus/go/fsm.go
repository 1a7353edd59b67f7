package main

import (
	"math"
	"sync/atomic"
	"time"
)

// nameOfFsm is no pirate's name.
const nameOfFsm = math.MaxUint32

// fsm is the Flying Spaghetti Monster: who it knows, and what it has counted.
type fsm struct {
	random   random
	crew     []chan message
	answers  chan answer
	delivery time.Duration
	given    uint64
	returned uint64
	goodbyes uint32
	complete uint32
}

// newFsm makes the FSM and its pirates, whose channels hold mailbox messages.
func newFsm(pirates uint32, seed uint64, mailbox int) *fsm {
	missing := &atomic.Int32{}
	missing.Store(int32(pirates))
	f := &fsm{
		random:  random{seed},
		crew:    make([]chan message, pirates),
		answers: make(chan answer, mailbox),
	}
	for i := range f.crew {
		f.crew[i] = make(chan message, mailbox)
		go sail(f.crew[i], missing)
	}
	return f
}

// deliver gives every pirate its five messages and waits until all of them are handled.
func (f *fsm) deliver() {
	began := time.Now()
	for i, to := range f.crew {
		first, second := f.otherThan(uint32(i)), f.otherThan(uint32(i))
		coins := f.random.below(100)
		period := 100 + f.random.below(9900)
		f.given += uint64(coins)
		to <- message{kind: hello, name: uint32(i), fsm: f.answers}
		to <- message{kind: nameDrop, name: first, address: f.crew[first]}
		to <- message{kind: nameDrop, name: second, address: f.crew[second]}
		to <- message{kind: goldCoin, name: nameOfFsm, value: coins}
		to <- message{kind: chat, value: period}
	}
	if first := <-f.answers; first.delivered {
		f.delivery = time.Since(began)
	}
}

// otherThan draws a pirate that is not the one with this name.
func (f *fsm) otherThan(name uint32) uint32 {
	other := f.random.below(uint32(len(f.crew)) - 1)
	if other >= name {
		other++
	}
	return other
}

// farewell says Goodbye to every pirate and counts the answers.
func (f *fsm) farewell() {
	for _, to := range f.crew {
		to <- message{kind: goodbye}
	}
	for range f.crew {
		last := <-f.answers
		f.goodbyes++
		f.returned += uint64(last.booty)
		if last.seen == delivery+1 {
			f.complete++
		}
	}
}
