package report

import (
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// clock formats a duration as short as possible, without fractions of a second: "1d6h", "1m30s". A
// duration below a second, which only odd models have, is formatted as time.Duration does.
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

// decimal formats a number.
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

// span formats a period: "1m to 2m", or one time if both are the same second.
func span(from, until time.Duration) string {
	if moment(until) == moment(from) {
		return moment(from)
	}
	return moment(from) + " to " + moment(until)
}
