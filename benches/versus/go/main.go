// Command versus does the pirates' work with goroutines and channels: one of each per pirate,
// typed messages, the standard library only.
//
//	versus -pirates 100000 -seed 1 -mailbox 16
//
// A mailbox of 0 makes unbuffered channels. It prints one line of name=number, as
// benches/versus/src/run.rs reads it; what the numbers mean is said there. The work is that of
// benches/versus/src/pirate.rs and fsm.rs, with the same random numbers.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"time"
)

// limit is how long a run may take before it is given up.
const limit = 60 * time.Second

func main() {
	pirates := flag.Uint("pirates", 100000, "how many pirates, at least 2")
	seed := flag.Uint64("seed", 1, "from which all random numbers derive")
	mailbox := flag.Uint("mailbox", 0, "messages that a channel holds; 0: unbuffered")
	flag.Parse()
	if *pirates < 2 || *pirates > math.MaxInt32 {
		fail(fmt.Errorf("-pirates %d: give a number from 2 to %d", *pirates, math.MaxInt32))
	}
	time.AfterFunc(limit, func() { fail(fmt.Errorf("not done after %v", limit)) })

	f := newFsm(uint32(*pirates), *seed, int(*mailbox))
	f.deliver()
	f.farewell()
	peak, err := peakMemory()
	if err != nil {
		fail(err)
	}
	fmt.Printf("delivery_ns=%d given=%d returned=%d goodbyes=%d complete=%d peak_memory=%d\n",
		f.delivery.Nanoseconds(), f.given, f.returned, f.goodbyes, f.complete, peak)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "versus:", err)
	os.Exit(2)
}
