package report

import (
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// clock spells a duration as short as possible, and drops only fractions of a second: "1d6h",
// "1m30s", "0s". Below a second, which only odd models have, it spells it as time.Duration does.
func clock(d time.Duration) string {
	if d < 0 {
		return "-" + clock(-max(d, -1<<62))
	}
	if d < time.Second {
		return d.String()
	}
	var b strings.Builder
	for _, unit := range [...]struct {
		of   time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.of; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + unit.name)
			d %= unit.of
		}
	}
	return b.String()
}

// decimal spells a number of machines.
func decimal[N int32 | int64 | int](n N) string { return strconv.FormatInt(int64(n), 10) }

// counted returns "1 machine", "3 machines".
func counted[N int32 | int64 | int](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return decimal(n) + " " + what + "s"
}

// moment returns a time in a history, in whole seconds.
func moment(d time.Duration) string { return clock(d.Truncate(time.Second)) }

// span spells the time from the begin to the end of something.
func span(from, until time.Duration) string {
	if moment(until) == moment(from) {
		return moment(from)
	}
	return moment(from) + " to " + moment(until)
}
