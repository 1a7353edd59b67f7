package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// peakMemory is the most memory the process has had resident, in bytes; 0 where the system does
// not tell.
func peakMemory() (uint64, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kilobytes uint64
			if _, err := fmt.Sscanf(value, "%d kB", &kilobytes); err != nil {
				return 0, fmt.Errorf("VmHWM in /proc/self/status: %w", err)
			}
			return kilobytes * 1024, nil
		}
	}
	return 0, lines.Err()
}
